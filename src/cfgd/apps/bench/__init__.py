"""Benchmarks. Speeds are ratios within one run, because absolute times vary between machines."""
