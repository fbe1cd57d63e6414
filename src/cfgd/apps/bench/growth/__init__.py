"""Growth of the time and memory of an iteration with rows, columns, nodes and settings."""
