"""`cfgd bench --fractional`: the rules of `cfgd.zoo` and five controls at equal gradients."""
