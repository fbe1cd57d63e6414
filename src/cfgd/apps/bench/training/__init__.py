"""`cfgd bench --training`: does the fractional direction help in training networks?"""
