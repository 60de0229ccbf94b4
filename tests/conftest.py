"""What all tests share. Waiting torch threads sleep, as in the command line: tests run beside sandboxes."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

settings.register_profile("unhurried", deadline=None)  # how fast an example runs is the machine's affair
settings.load_profile("unhurried")
