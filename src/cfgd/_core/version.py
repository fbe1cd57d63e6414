"""The version, which pyproject.toml says once."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("cfgd")
except PackageNotFoundError:  # the sources on a path, not installed
    __version__ = "unknown"
