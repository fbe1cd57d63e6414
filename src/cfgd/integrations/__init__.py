"""cfgd inside SciPy, scikit-learn, lmfit, optax and PyTorch; each is imported only on use."""
