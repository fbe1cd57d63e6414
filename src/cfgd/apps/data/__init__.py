"""Problems and data sets that experiments, benchmarks and tests share.

This file imports nothing, so that reading the gas data does not import JAX.
"""
