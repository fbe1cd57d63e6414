"""`cfgd bench --training`: the fractional direction in the training of small networks."""
