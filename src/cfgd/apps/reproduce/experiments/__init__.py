"""The experiments, one in each file; `catalogue` lists them by name."""
