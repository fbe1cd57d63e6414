"""`cfgd bench --fractional`: the rules of `cfgd.zoo` and five baselines at equal gradients."""
