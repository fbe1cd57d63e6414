"""`cfgd reproduce`: the figures and claims of the paper, checked by fresh runs.

This file imports nothing, so that `import cfgd.apps.reproduce` needs no optional packages.
"""
