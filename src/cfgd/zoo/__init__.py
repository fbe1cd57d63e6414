"""Published fractional update rules, under the names and years of their sources.

There are sixteen rules in nineteen classes, because rules 7, 13 and 16 have two variants each. Each
class is a method of `minimize` and `sweep`; `cfgd.integrations.optax.from_rule` makes it an optax
transformation. Its docstring has the formula, the source, the published range of its parameters,
and what is unclear or contradictory in the source. Most formulas were taken from a public
catalogue, because the papers were not available.
`cfgd bench --fractional` compares all of them; docs/fractional.md has the results.

>>> import cfgd
>>> f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
>>> end = cfgd.minimize(f, [0.0, 0.0], cfgd.zoo.Xue2020(0.3, alpha=0.95))
>>> print(end.status.name, end.x.round(3))
converged [-1.2  2.6]
"""

from cfgd.zoo.history import (
    AdaGL2024 as AdaGL2024,
    FracAdam2025 as FracAdam2025,
    Kan2021 as Kan2021,
    Xie2022 as Xie2022,
)
from cfgd.zoo.own_size import (
    Herrera2022 as Herrera2022,
    HerreraAdam2022 as HerreraAdam2022,
    Khan2019 as Khan2019,
    Thabet2026 as Thabet2026,
)
from cfgd.zoo.previous_point import (
    Khan2018 as Khan2018,
    Lou2022 as Lou2022,
    Sheng2020 as Sheng2020,
    Tan2024 as Tan2024,
    Wang2017 as Wang2017,
    Xue2020 as Xue2020,
)
from cfgd.zoo.scalar_rate import Liu2023 as Liu2023
from cfgd.zoo.series import (
    Aggarwal2024 as Aggarwal2024,
    Shin2021 as Shin2021,
    Taresh2022 as Taresh2022,
    Wei2020 as Wei2020,
)
from cfgd.zoo.update_rule import (
    NOT_NEGATIVE as NOT_NEGATIVE,
    ORDER as ORDER,
    POSITIVE as POSITIVE,
    Range as Range,
    UpdateRule as UpdateRule,
    parameter as parameter,
)

__all__ = [
    "AdaGL2024",
    "Aggarwal2024",
    "FracAdam2025",
    "Herrera2022",
    "HerreraAdam2022",
    "Kan2021",
    "Khan2018",
    "Khan2019",
    "Liu2023",
    "Lou2022",
    "Sheng2020",
    "Shin2021",
    "Tan2024",
    "Taresh2022",
    "Thabet2026",
    "UpdateRule",
    "Wang2017",
    "Wei2020",
    "Xie2022",
    "Xue2020",
    "parameter",
]


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return [*__all__, "NOT_NEGATIVE", "ORDER", "POSITIVE", "Range"]
