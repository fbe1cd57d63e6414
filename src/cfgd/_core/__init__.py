"""Private parts that every room uses: types, checks, arrays, files, processes."""
