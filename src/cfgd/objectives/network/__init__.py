"""The two-layer network of the paper."""
