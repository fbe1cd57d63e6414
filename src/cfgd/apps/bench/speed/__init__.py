"""`python -m cfgd.apps.bench`: what an iteration and a direction cost, as ratios of one run."""
