"""Linear models: design matrices, losses, rows that are streamed or sharded."""
