"""Write a tree of arrays to a file and read it: atomically, with a checksum, without pickle.

The file is a NumPy .npz archive. Its entry "tree" is JSON and describes the tree; the other entries
are the arrays. Classes are stored by name and looked up among those of the run and those of cfgd,
so that a file cannot create any other object.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import jax
import numpy as np

from cfgd._core.files import atomic_writer, first_line, reason
from cfgd._core.npy import UnreadableError, load_stored
from cfgd.status import Status

META = "tree"
# the suffix of the previous file, which is kept in case the newest one is damaged
BEFORE = ".before"


class DamagedError(Exception):
    """The content of a file is not what was written."""


# ------------------------------------------------------------------------------------- trees


def classes_of(tree: Any) -> dict[str, type]:
    """Return the classes of the nodes of a tree, by name."""
    found: dict[str, type] = {}

    def visit(node: Any) -> None:
        if is_record(node):
            found[_class_name(type(node))] = type(node)
        for child in children_of(node).values():
            visit(child)

    visit(tree)
    return found


def pack(tree: Any, arrays: list[np.ndarray]) -> Any:
    """Return a description of the tree for JSON, and append its arrays to a list."""
    is_plain = isinstance(tree, bool | int | float | str) and not isinstance(tree, np.generic)
    if tree is None or is_plain:
        return {"is": tree}
    if isinstance(tree, Status):
        return {"status": tree.name}
    children = children_of(tree)
    if is_record(tree):
        kind = _class_name(type(tree))
    elif isinstance(tree, tuple | list | dict):
        kind = type(tree).__name__
    else:
        return _pack_array(tree, arrays)
    return {"kind": kind, "of": {name: pack(child, arrays) for name, child in children.items()}}


def unpack(packed: Any, arrays: list[np.ndarray], classes: dict[str, type]) -> Any:
    """Return the tree that `pack` described; `classes` are those that it may contain.

    Raises
    ------
    DamagedError
        If the description is not one that `pack` gives.
    """
    try:
        return _unpack(packed, arrays, classes)
    except DamagedError:
        raise
    except Exception as error:  # a description may be anything that JSON can hold
        cause = f"{type(error).__name__}: {first_line(str(error))}"
        raise DamagedError(f"its tree cannot be read ({cause})") from error


def _unpack(packed: Any, arrays: list[np.ndarray], classes: dict[str, type]) -> Any:
    if "is" in packed:
        if isinstance(packed["is"], list | dict):
            raise DamagedError("a number of its tree is a list or an object")
        return packed["is"]
    if "status" in packed:
        return Status[packed["status"]]
    if "array" in packed:
        return _unpack_array(packed, arrays)
    children = {name: _unpack(child, arrays, classes) for name, child in packed["of"].items()}
    kind = packed["kind"]
    if kind == "dict":
        return children
    if kind in ("tuple", "list"):
        return (tuple if kind == "tuple" else list)(children.values())
    record = classes.get(kind) or _class_of_cfgd(kind)
    if issubclass(record, tuple):
        return record(**children)
    unknown = set(children) - {field.name for field in dataclasses.fields(record)}  # type: ignore[arg-type]
    if unknown:
        raise DamagedError(f"{kind} has no field {min(unknown)!r}")
    # without `__init__`, whose arguments need not be the fields
    node = object.__new__(record)
    for name, child in children.items():
        object.__setattr__(node, name, child)
    return node


def _pack_array(leaf: Any, arrays: list[np.ndarray]) -> dict[str, Any]:
    key, on_host = None, isinstance(leaf, np.ndarray | np.generic)
    if not on_host and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        key, leaf = str(jax.random.key_impl(leaf)), jax.random.key_data(leaf)
    arrays.append(np.asarray(leaf))
    return {
        "array": len(arrays) - 1,
        "host": on_host,
        "number": isinstance(leaf, np.generic),
        "key": key,
    }


def _unpack_array(packed: Any, arrays: list[np.ndarray]) -> Any:
    array: Any = arrays[packed["array"]]
    if packed["key"] is not None:
        return jax.random.wrap_key_data(array, impl=packed["key"])
    if not packed["host"]:
        return jax.numpy.asarray(array)
    return array[()] if packed["number"] else array.copy()


def is_record(node: Any) -> bool:
    """Return whether the node has named fields: a dataclass or a named tuple."""
    return dataclasses.is_dataclass(node) or (isinstance(node, tuple) and hasattr(node, "_fields"))


def children_of(node: Any) -> dict[str, Any]:
    """Return the parts of a node of a tree by name; none for a leaf."""
    if dataclasses.is_dataclass(node):
        names = [field.name for field in dataclasses.fields(node)]
        return {name: getattr(node, name) for name in names if hasattr(node, name)}
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return node._asdict()  # type: ignore[attr-defined]
    if isinstance(node, dict):
        return node
    if isinstance(node, tuple | list):
        return {str(i): child for i, child in enumerate(node)}
    return {}


def _class_of_cfgd(name: str) -> type:
    """Return a class of cfgd by its name; refuse any other class, and import nothing."""
    module, _, class_name = name.rpartition(".")
    found = None
    if module.startswith("cfgd."):
        found = getattr(sys.modules.get(module), class_name, None)
    if not isinstance(found, type) or not (
        issubclass(found, tuple) or dataclasses.is_dataclass(found)
    ):
        raise DamagedError(f"it contains {name!r}, which is not a class of this run")
    return found


def _class_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


# ------------------------------------------------------------------------------------- files


def write(path: Path, meta: dict[str, Any], arrays: list[np.ndarray]) -> None:
    """Write a new file in place of the old one, which is kept as `previous_path(path)`."""
    with atomic_writer(path, keep_previous=previous_path(path)) as file:
        put(file, meta, arrays)


def put(file: BinaryIO, meta: dict[str, Any], arrays: list[np.ndarray]) -> None:
    """Write the archive to an open file."""
    encoded = json.dumps(meta | {"checksum": _checksum(meta, arrays)}).encode()
    entries = {f"a{i}": array for i, array in enumerate(arrays)}
    np.savez(file, **{META: np.frombuffer(encoded, np.uint8)}, **entries)  # type: ignore[arg-type]


def read(file: Path | io.BufferedIOBase) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Return the description and the arrays of a file; raise DamagedError if it is damaged."""
    try:
        with contextlib.ExitStack() as stack:
            opened = stack.enter_context(file.open("rb")) if isinstance(file, Path) else file
            entries = load_stored(opened)
        meta = json.loads(entries.pop(META).tobytes())
        arrays = [entries[f"a{i}"] for i in range(len(entries))]
        checksum = meta.pop("checksum")
    except MemoryError:
        raise DamagedError("it takes more memory than there is") from None
    except OSError as error:
        raise DamagedError(f"it cannot be read ({reason(error)})") from error
    except UnreadableError as error:
        raise DamagedError(f"it cannot be read ({error})") from error
    except (ValueError, RecursionError) as error:
        raise DamagedError("its tree is not JSON") from error
    except (KeyError, AttributeError, TypeError) as error:
        raise DamagedError("it does not have the entries of a checkpoint") from error
    if checksum != _checksum(meta, arrays):
        raise DamagedError("its checksum does not match its content")
    return meta, arrays


def previous_path(path: Path) -> Path:
    """Return the name of the previous file."""
    return path.with_name(path.name + BEFORE)


def _checksum(meta: dict[str, Any], arrays: Iterable[np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
