"""`python -m cfgd.apps.bench`: speed and memory of cfgd, as ratios within one run."""
