"""`cfgd bench`: compare `cfgd.Auto` with other solvers."""
