"""Private helpers of every package: types, checks, arrays, pytrees, sharding, processes, files."""
