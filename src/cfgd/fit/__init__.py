"""`cfgd fit` and `cfgd predict`: linear models of tables in files, of any size."""

from cfgd.extras import needed

needed("pyarrow", "`cfgd.fit`", "fit")
