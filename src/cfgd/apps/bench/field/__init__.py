"""`cfgd bench`: where cfgd stands among the solvers of the field, losses included."""
