"""`cfgd fit` and `cfgd predict`: linear models of tables in files of any size."""

from cfgd._core.extras import import_extra

import_extra("pyarrow", "`cfgd.apps.fit`", "fit")
