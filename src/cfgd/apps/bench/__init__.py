"""Measurements: ratios taken in one run, because machines are noisy."""
