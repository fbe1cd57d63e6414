"""Solvers that need no parameters."""
