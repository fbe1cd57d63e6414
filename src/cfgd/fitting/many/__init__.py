"""Many fits of one model: `curve_fit_many` and its result."""
