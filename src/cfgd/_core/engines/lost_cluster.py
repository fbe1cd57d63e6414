"""The error of a lost Dask cluster, which the command line knows without loading JAX."""

from __future__ import annotations


class LostClusterError(RuntimeError):
    """Raised where the scheduler of a Dask cluster is lost, or blocks kill their workers."""
