"""Type aliases of the annotations. Shapes are those of one run: a sweep adds its axis by `vmap`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

if TYPE_CHECKING:
    # a static checker cannot express "NumPy or JAX, and the result of the same kind"
    AnyArray: TypeAlias = Any
else:
    AnyArray = Array | np.ndarray | np.generic

# of one run
Scalar: TypeAlias = Float[AnyArray, ""]
Vector: TypeAlias = Float[AnyArray, " d"]
Vectors: TypeAlias = Float[AnyArray, "s d"]  # s vectors as rows: points, or slopes at each of them
Rows: TypeAlias = Float[AnyArray, "m d"]  # one row for each sample
Matrix: TypeAlias = Float[AnyArray, "n n"]
Flag: TypeAlias = Bool[AnyArray, ""]
Count: TypeAlias = Int[AnyArray, ""]
Number: TypeAlias = Scalar | float  # a float is known before tracing
Etas: TypeAlias = Float[AnyArray, " n *d"]  # n step sizes: numbers, or one for each coordinate
LineValues: TypeAlias = Float[AnyArray, " n"]  # the values of f at n step sizes
Numbers: TypeAlias = Float[AnyArray, "..."]  # one number, or one for each coordinate

# of one run, or of all runs of a sweep
Points: TypeAlias = Float[AnyArray, "*runs d"]
PointFlags: TypeAlias = Bool[AnyArray, "*runs d"]  # one for each coordinate
PointCounts: TypeAlias = Int[AnyArray, "*runs d"]
Counts: TypeAlias = Int[AnyArray, "*runs"]
Reals: TypeAlias = Float[AnyArray, "*runs"]
Flags: TypeAlias = Bool[AnyArray, "*runs"]

# inputs and data
UserInput: TypeAlias = object  # numbers, arrays, tables or names, which the function checks
ArrayInput: TypeAlias = ArrayLike | Sequence[Any]  # numbers as a user writes them
Values: TypeAlias = Array | np.ndarray  # an input as an array: floating once checked, unless traced
Data: TypeAlias = Float[Array | np.ndarray, "..."]  # floating, on the host or a device
Column: TypeAlias = Float[AnyArray, " n"]
Samples: TypeAlias = Float[Array | np.ndarray, " m"]  # one number for each sample
DType: TypeAlias = np.dtype[Any]
