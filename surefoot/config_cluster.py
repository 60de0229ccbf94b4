"""`[cluster]`: how a run is spread over Ray; it takes effect with `surefoot train --cluster`."""

from __future__ import annotations

from pydantic import Field

from surefoot.config_section import Section


class ClusterConfig(Section):
    """`[cluster]`: engines and graders as processes on one or many machines, with `surefoot train --cluster`."""

    engines: int = Field(default=2, ge=1)
    """Processes that sample, each with its own copy of the weights. `cluster.json` in the run directory can change it
    while the run goes on."""
    graders: int = Field(default=1, ge=1)
    """Processes that grade, each with `sandbox.workers` sandboxes. `cluster.json` can change it."""
    threads: int = Field(default=1, ge=1)
    """CPU threads of torch in one engine."""
    engine_cpus: float = Field(default=1.0, ge=0)
    """CPUs that Ray sets aside for one engine; of no account with `--cluster local`."""
    engine_gpus: float = Field(default=0.0, ge=0)
    """GPUs that Ray sets aside for one engine."""
    grader_cpus: float = Field(default=1.0, ge=0)
    """CPUs that Ray sets aside for one grading process; of no account with `--cluster local`."""
    piece_mb: int = Field(default=16, ge=1, le=1024)
    """Weights travel in pieces of this size, each with its checksum, MiB."""
    replacements: int = Field(default=16, ge=0)
    """Lost engines and graders that are replaced before the run gives up."""
    start_seconds: float = Field(default=300.0, gt=0)
    """Longest that the first engines and graders may take to start."""
    stuck_seconds: float = Field(default=1800.0, gt=0)
    """A stage (generation, grading, sync, learning) that shows no progress for so long ends the run with an error that
    names it; the stacks of all processes are kept in the run directory. An update of the learner must fit in."""
