"""The words of the annotations. Shapes are those of one setting: a sweep adds its axis outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

if TYPE_CHECKING:
    AnyArray: TypeAlias = Array
else:  # in a run on the host NumPy's, which behave alike
    AnyArray = Array | np.ndarray | np.generic

Scalar: TypeAlias = Float[AnyArray, ""]
Vector: TypeAlias = Float[AnyArray, " d"]
Vectors: TypeAlias = Float[AnyArray, "s d"]  # one point, or slopes at it, in each row
Rows: TypeAlias = Float[AnyArray, "m d"]  # a row for each sample
Matrix: TypeAlias = Float[AnyArray, "n n"]
Points: TypeAlias = Float[AnyArray, "*runs d"]  # of a run, or of each run of a sweep
Flag: TypeAlias = Bool[AnyArray, ""]
Count: TypeAlias = Int[AnyArray, ""]
# of a run, or of each run of a sweep
Counts: TypeAlias = Int[AnyArray, "*runs"]
Reals: TypeAlias = Float[AnyArray, "*runs"]
Flags: TypeAlias = Bool[AnyArray, "*runs"]
Number: TypeAlias = Scalar | float  # what may be known before tracing
Etas: TypeAlias = Float[AnyArray, " n *d"]  # candidates, numbers or one for each coordinate
LineValues: TypeAlias = Float[AnyArray, " n"]  # the values at them
Numbers: TypeAlias = Float[Array, "..."]  # a number, or one for each coordinate
Offset: TypeAlias = Float[AnyArray, " offset"]  # to be added to a vector: one like it, or a zero
DType: TypeAlias = np.dtype[Any]  # of an array
Column: TypeAlias = Float[Array | np.ndarray, " n"]
Samples: TypeAlias = Float[Array | np.ndarray, " m"]  # a number for each sample
ArrayInput: TypeAlias = ArrayLike | Sequence[Any]  # numbers as a user writes them
Data: TypeAlias = Float[Array | np.ndarray, "..."]  # as the user gave it, or as the solver holds it
Values: TypeAlias = Array | np.ndarray  # of any dtype: floating once checked, unless traced
