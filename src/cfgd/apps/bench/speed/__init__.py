"""`python -m cfgd.apps.bench`: the costs of iterations and directions, as ratios in one run."""
