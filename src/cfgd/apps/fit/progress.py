"""The interface for the progress of a fit."""

from __future__ import annotations


class ProgressReporter:
    """Receives the progress of a fit; this base class ignores it."""

    def start_stage(self, name: str, rows: int | None = None) -> None:
        """Start a stage: one pass over `rows` rows, or work whose extent is not known."""

    def rows_read(self, rows: int) -> None:
        """Add to the rows that the current pass has read."""

    def update(self, fraction: float, description: str) -> None:
        """Set the finished fraction of the stage, from 0 to 1."""
