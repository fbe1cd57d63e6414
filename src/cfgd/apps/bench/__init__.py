"""Benchmarks. Speeds are ratios of times within one run, because absolute times vary."""
