"""cfgd inside SciPy, scikit-learn, lmfit, optax and PyTorch; each is imported only on use."""

import importlib
from importlib.util import find_spec
from types import ModuleType

_MODULES = ["lmfit", "optax", "scipy", "sklearn", "torch"]


def __getattr__(name: str) -> ModuleType:
    """Import and return an integration."""
    if name not in _MODULES:
        raise AttributeError(f"module 'cfgd.integrations' has no attribute {name!r}")
    return importlib.import_module(f"cfgd.integrations.{name}")


def __dir__() -> list[str]:
    """Return the integrations whose packages are installed, for tab completion and `help`."""
    return [name for name in _MODULES if find_spec(name) is not None]
