"""The words of the annotations. Shapes are those of one setting: a sweep adds its axis outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

if TYPE_CHECKING:
    Computed: TypeAlias = Array
else:  # in a run on the host NumPy's, which behave alike
    Computed = Array | np.ndarray | np.generic

Scalar: TypeAlias = Float[Computed, ""]
Vector: TypeAlias = Float[Computed, " d"]
Vectors: TypeAlias = Float[Computed, "s d"]  # one point, or slopes at it, in each row
Rows: TypeAlias = Float[Computed, "m d"]  # a row for each sample
Matrix: TypeAlias = Float[Computed, "n n"]
Points: TypeAlias = Float[Computed, "*runs d"]  # of a run, or of each run of a sweep
Flag: TypeAlias = Bool[Computed, ""]
Count: TypeAlias = Int[Computed, ""]
# of a run, or of each run of a sweep
Counts: TypeAlias = Int[Computed, "*runs"]
Reals: TypeAlias = Float[Computed, "*runs"]
Flags: TypeAlias = Bool[Computed, "*runs"]
Number: TypeAlias = Scalar | float  # what may be known before tracing
Etas: TypeAlias = Float[Computed, " n *d"]  # candidates, numbers or one for each coordinate
LineValues: TypeAlias = Float[Computed, " n"]  # the values at them
Numbers: TypeAlias = Float[Array, "..."]  # a number, or one for each coordinate
Offset: TypeAlias = Float[Computed, " offset"]  # to be added to a vector: one like it, or a zero
DType: TypeAlias = np.dtype[Any]  # of an array
Column: TypeAlias = Float[Array | np.ndarray, " n"]
Samples: TypeAlias = Float[Array | np.ndarray, " m"]  # a number for each sample
Given: TypeAlias = ArrayLike | Sequence[Any]  # numbers as a user writes them
Data: TypeAlias = Float[Array | np.ndarray, "..."]  # as the user gave it, or as the solver holds it
Values: TypeAlias = Array | np.ndarray  # of any dtype: floating once checked, unless traced
