"""`cfgd fit` and `cfgd predict`: linear models of tables in files of any size."""

from cfgd._core.extras import needed

needed("pyarrow", "`cfgd.apps.fit`", "fit")
