"""How many rows a block has."""

from __future__ import annotations

import numpy as np

MIN_ROWS, MAX_ROWS = 64, 2**16  # of a block; larger blocks are not faster


def rows_of_memory(memory: float, columns: int, copies: int) -> int:
    """Return the rows of which `copies` fit into `memory` bytes, between the limits."""
    return int(np.clip(memory / (8 * copies * max(columns, 1)), MIN_ROWS, MAX_ROWS))
