"""The type checker that executes the annotations of cfgd: where a float is wanted, 0 will do."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
