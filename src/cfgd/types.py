"""The words of the annotations. Shapes are those of one setting: a sweep adds its axis outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

Scalar: TypeAlias = Float[Array, ""]
Vector: TypeAlias = Float[Array, " d"]
Vectors: TypeAlias = Float[Array, "s d"]  # one point, or slopes at it, in each row
Points: TypeAlias = Float[Array, "*runs d"]  # of a run, or of each run of a sweep
Flag: TypeAlias = Bool[Array, ""]
Count: TypeAlias = Int[Array, ""]
# of a run, or of each run of a sweep
Counts: TypeAlias = Int[Array, "*runs"]
Reals: TypeAlias = Float[Array, "*runs"]
Flags: TypeAlias = Bool[Array, "*runs"]
Number: TypeAlias = Scalar | float  # what may be known before tracing
Numbers: TypeAlias = Float[Array, "..."]  # a number, or one for each coordinate
DType: TypeAlias = np.dtype[Any]  # of an array
Column: TypeAlias = Float[Array | np.ndarray, " n"]
Samples: TypeAlias = Float[Array | np.ndarray, " m"]  # a number for each sample
Given: TypeAlias = ArrayLike | Sequence[Any]  # numbers as a user writes them
Data: TypeAlias = Float[Array | np.ndarray, "..."]  # as the user gave it, or as the solver holds it
Values: TypeAlias = Array | np.ndarray  # of any dtype: floating once checked, unless traced
