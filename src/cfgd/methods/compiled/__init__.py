"""Solvers in plain JAX for what must be compiled as a whole: batches of fits, and `argmin`."""
