"""The experiments, one in each file; `catalogue` has them by name."""
