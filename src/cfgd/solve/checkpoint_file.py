"""A tree of arrays in a file: without pickle, with a checksum, and never half written.

The file is NumPy's .npz with one entry of JSON, which says how the arrays make up the tree. Classes
are named, and taken from those that the reader knows: a file cannot make anything else.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import io
import json
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import equinox as eqx
import jax
import numpy as np

from cfgd._core.files import atomic_writer

META = "tree"
# where the file before the last one is, in case the last one is damaged
BEFORE = ".before"


# what reading a file that is something else may raise; the last two are of zips that are packed in
# another way, or have a password
UNREADABLE = (
    *(OSError, ValueError, KeyError, EOFError, AttributeError, zipfile.BadZipFile),
    *(NotImplementedError, RuntimeError),
)


class DamagedError(Exception):
    """A file that does not hold what was written."""


# ------------------------------------------------------------------------------------- trees


def classes_of(tree: Any) -> dict[str, type]:
    """The classes in a tree, by their names."""
    found: dict[str, type] = {}

    def visit(part: Any) -> None:
        if _is_record(part):
            found[_name(type(part))] = type(part)
        for child in _children(part).values():
            visit(child)

    visit(tree)
    return found


def pack(tree: Any, arrays: list[np.ndarray]) -> Any:
    """What JSON can say of a tree; its arrays are put at the end of a list."""
    plain = isinstance(tree, bool | int | float | str) and not isinstance(tree, np.generic)
    if tree is None or plain:
        return {"is": tree}
    children = _children(tree)
    if _is_record(tree):
        kind = _name(type(tree))
    elif isinstance(tree, tuple | list | dict):
        kind = type(tree).__name__
    else:
        return _packed_array(tree, arrays)
    return {"kind": kind, "of": {name: pack(child, arrays) for name, child in children.items()}}


def unpack(said: Any, arrays: list[np.ndarray], classes: dict[str, type]) -> Any:
    """The tree of which this was said."""
    if "is" in said:
        return said["is"]
    if "array" in said:
        return _unpacked_array(said, arrays)
    children = {name: unpack(child, arrays, classes) for name, child in said["of"].items()}
    kind = said["kind"]
    if kind == "dict":
        return children
    if kind in ("tuple", "list"):
        return (tuple if kind == "tuple" else list)(children.values())
    made = classes.get(kind) or _own(kind)
    if issubclass(made, tuple):
        return made(**children)
    whole = object.__new__(made)
    for name, child in children.items():
        object.__setattr__(whole, name, child)
    return whole


def _packed_array(leaf: Any, arrays: list[np.ndarray]) -> dict[str, Any]:
    key, host = None, isinstance(leaf, np.ndarray | np.generic)
    if not host and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        key, leaf = str(jax.random.key_impl(leaf)), jax.random.key_data(leaf)
    arrays.append(np.asarray(leaf))
    return {
        "array": len(arrays) - 1,
        "host": host,
        "number": isinstance(leaf, np.generic),
        "key": key,
    }


def _unpacked_array(said: Any, arrays: list[np.ndarray]) -> Any:
    array: Any = arrays[said["array"]]
    if said["key"] is not None:
        return jax.random.wrap_key_data(array, impl=said["key"])
    if not said["host"]:
        return jax.numpy.asarray(array)
    return array[()] if said["number"] else array.copy()


def _is_record(part: Any) -> bool:
    return isinstance(part, eqx.Module) or (isinstance(part, tuple) and hasattr(part, "_fields"))


def _children(part: Any) -> dict[str, Any]:
    if isinstance(part, eqx.Module):
        names = [field.name for field in dataclasses.fields(part)]
        return {name: getattr(part, name) for name in names if hasattr(part, name)}
    if isinstance(part, tuple) and hasattr(part, "_fields"):
        return part._asdict()  # type: ignore[attr-defined]
    if isinstance(part, dict):
        return part
    if isinstance(part, tuple | list):
        return {str(i): child for i, child in enumerate(part)}
    return {}


def _own(name: str) -> type:
    """A class of cfgd's by its name."""
    module, _, word = name.rpartition(".")
    found = None
    if module.startswith("cfgd."):
        with contextlib.suppress(ImportError):
            found = getattr(importlib.import_module(module), word, None)
    if not isinstance(found, type) or not issubclass(found, eqx.Module | tuple):
        raise DamagedError(f"it speaks of {name!r}, which has no place in this run")
    return found


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


# ------------------------------------------------------------------------------------- files


def write(path: Path, meta: dict[str, Any], arrays: list[np.ndarray]) -> None:
    """To a new file, onto the disk, and then in place of the old one, which is kept beside it."""
    with atomic_writer(path) as file:
        put(file, meta, arrays)
        file.flush()
        os.fsync(file.fileno())
        if path.exists():
            path.replace(before(path))
    _sync_folder(path.parent)


def put(file: BinaryIO, meta: dict[str, Any], arrays: list[np.ndarray]) -> None:
    """What is in a file."""
    said = json.dumps(meta | {"checksum": _checksum(meta, arrays)}).encode()
    entries = {f"a{i}": array for i, array in enumerate(arrays)}
    np.savez(file, **{META: np.frombuffer(said, np.uint8)}, **entries)  # type: ignore[arg-type]


def read(file: Path | BinaryIO) -> tuple[dict[str, Any], list[np.ndarray]]:
    """What was written, or an error that says that this is something else."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            raw = {name.removesuffix(".npy"): archive.read(name) for name in names}
        entries = {name: np.load(io.BytesIO(one), allow_pickle=False) for name, one in raw.items()}
        meta = json.loads(entries.pop(META).tobytes())
        arrays = [entries[f"a{i}"] for i in range(len(entries))]
        said = meta.pop("checksum")
    except UNREADABLE as error:
        raise DamagedError(f"it cannot be read ({type(error).__name__}: {error})") from error
    if said != _checksum(meta, arrays):
        raise DamagedError("its checksum is another one")
    return meta, arrays


def before(path: Path) -> Path:
    return path.with_name(path.name + BEFORE)


def _checksum(meta: dict[str, Any], arrays: Iterable[np.ndarray]) -> str:
    found = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for array in arrays:
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _sync_folder(folder: Path) -> None:
    """A new name is on the disk when its folder is; not every system lets one ask for it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
