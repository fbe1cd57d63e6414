"""The examples in docstrings of an integration are left out where its library is missing."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["cfgd/integrations/torch"]
