"""Where passes over blocks of rows are computed: here, in threads, over processes, or by Dask.

Data are a list of parts, and a part is a function that returns an iterator of blocks. A pass is a
function of the blocks of a part, and an engine applies it to all parts:

- `map` returns its results, in the order of the parts;
- `sum` adds them, if they are tuples of arrays, in an order that depends on the parts alone.

For the same parts, a result is therefore the same to the last bit, whichever engine computes it.
"""
