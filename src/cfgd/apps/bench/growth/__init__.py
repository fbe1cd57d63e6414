"""How time and memory of an iteration grow with rows, columns, nodes and settings."""
