"""The learner: losses, packing, log-probs without logits, mixed-precision weights, and the update that ties them."""

from surefoot.learner.learner import PolicyLearner
from surefoot.learner.losses import KL_ESTIMATORS, LOSSES, Clip, TokenArrays, TokenLoss, find_loss, loss
from surefoot.learner.warm_start import Example, warm_start

__all__ = [
    "KL_ESTIMATORS",
    "LOSSES",
    "Clip",
    "Example",
    "PolicyLearner",
    "TokenArrays",
    "TokenLoss",
    "find_loss",
    "loss",
    "warm_start",
]
