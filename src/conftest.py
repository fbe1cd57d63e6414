"""Which modules of the library are searched for examples in docstrings."""

from importlib.util import find_spec
from pathlib import Path

# Two modules of one name cannot be collected, and tests has a conftest, too. The examples of an
# integration are left out where its library is missing.
collect_ignore = ["conftest.py"] + [
    path
    for package, path in (
        ("torch", "cfgd/integrations/torch"),
        ("lmfit", "cfgd/integrations/lmfit.py"),
    )
    if not find_spec(package)
]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave modules without an example unread: importing them takes seconds."""
    if collection_path.suffix != ".py":
        return None
    return None if ">>>" in collection_path.read_text(encoding="utf-8") else True
