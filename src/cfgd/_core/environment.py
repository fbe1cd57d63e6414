"""Environment variables by which processes find one another."""

from __future__ import annotations

import os

# variables that `cfgd launch` sets: address of the coordinator, number of processes, index of the
# process
COORDINATOR, COUNT, INDEX = "CFGD_COORDINATOR", "CFGD_PROCESSES", "CFGD_PROCESS"
# variables of SLURM and Open MPI: the number of processes, and one that is only set in a process
# that they started
CLUSTERS = (
    ("SLURM_NTASKS", "SLURM_STEP_NODELIST"),
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
)


def in_cluster() -> bool:
    """Return whether SLURM or Open MPI has started this process and others with it."""
    return any(
        int(os.environ.get(count, 1)) > 1 and marker in os.environ for count, marker in CLUSTERS
    )
