"""Ten figures of docs/measured.md, commit by commit, with airspeed velocity (asv).

`asv run HEAD^!` measures a commit, `asv continuous main HEAD` compares two, and
`asv run --python=same --quick` tries them in the environment at hand. The comparisons with other
libraries are in `make bench`.
"""
