"""`cfgd bench`: compare `cfgd.Auto` with other solvers, including the problems where it loses."""
