"""Every figure and claim of the paper from a fresh run: the experiments behind `cfgd reproduce`.

Nothing is imported here, so that `import cfgd.apps.reproduce` needs none of the extra's packages.
"""
