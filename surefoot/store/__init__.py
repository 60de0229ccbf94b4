"""The run directory: the single source of truth about a run, written so that a crash at any instant loses nothing."""

from surefoot.store.checkpoint import Checkpoint, CheckpointStore
from surefoot.store.journal import Journal
from surefoot.store.quarantine import Quarantine
from surefoot.store.rollouts import write_rollouts
from surefoot.store.rundir import RunDirectory

__all__ = ["Checkpoint", "CheckpointStore", "Journal", "Quarantine", "RunDirectory", "write_rollouts"]
