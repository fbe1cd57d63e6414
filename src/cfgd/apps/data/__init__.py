"""Problems and data sets that experiments, benchmarks and tests share.

Nothing is imported here: reading the gas data does not load the standard problems.
"""
