"""cfgd inside SciPy, scikit-learn, optax and PyTorch; each subpackage is imported only on use."""
