"""The version of the installed package, as pyproject.toml defines it."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("cfgd")
except PackageNotFoundError:  # the sources are on the path, but not installed
    __version__ = "unknown"
