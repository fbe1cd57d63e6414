"""Random gas data in the formats of its files."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cfgd.apps.data import gas


def table(rows: int = 140) -> Any:
    return np.random.default_rng(0).normal(size=(rows, 129)).round(6)


def csv(rows: Any) -> str:
    return "\n".join(",".join(f"{value}" for value in row) for row in rows) + "\n"


def batch(rows: Any, kind: int = 1) -> str:
    return "".join(
        f"{kind};{row[-1]} " + " ".join(f"{j}:{v}" for j, v in enumerate(row[:-1], 1)) + " \n"
        for row in rows
    )


def zip_archive(
    path: Path, members: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED
) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def error_of(path: Path) -> str:
    """Read a file that must be refused; return the error message, which is one sentence."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        gas.read(path)
    assert type(caught.value) is ValueError
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message
