"""The rules with their grids of constants: the same number of settings for each.

A setting is a rate and at most two other constants. Rates of rules that scale the gradient are in
units of 1/L, with L the largest curvature at the start; those of Adam and of rules made with it are
lengths. The grids are the same for all problems. They were written down before the full run, but
for the corrections that docs/fractional.md names: one range of rates for rules and controls, the
gammas of rule 16, and "16 Shin by momentum", since gammas that are a factor of 4 apart hardly meet
a good momentum.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cfgd import zoo
from cfgd.apps.bench.fractional import controls
from cfgd.zoo.update_rule import UpdateRule

LBFGS = "L-BFGS"
RATES, OTHERS = 12, 4  # rates, and values of the other constants, of a grid

# eta L around 1.9, the last multiple of 0.1 at which gradient descent converges on a quadratic:
# larger ones too, for factors D^(1 - alpha) < 1 and where the curvature falls along a run
AROUND_TWO = 1.9 * 2.0 ** np.arange(6, 6 - RATES, -1)
# factors D^(1 - alpha) > 1 need smaller ones
BELOW_TWO = 1.9 * 4.0 ** np.arange(3, 3 - RATES, -1)
# lengths of the steps of Adam and of rules made with it
LENGTHS = np.logspace(-3.5, 0.5, RATES)
ONE_CONSTANT = 1.9 * 2.0 ** (6 - np.arange(RATES * OTHERS) / OTHERS)


class Scale(NamedTuple):
    """The largest curvature at the start, and the mean of the diagonal of the Hessian there."""

    largest: float
    mean: float


@dataclasses.dataclass(frozen=True)
class Competitor:
    """A rule under its name, and its settings: `make(scale, *setting)` is the rule."""

    name: str
    number: int | None  # in the table of docs/fractional.md; None for controls and one's own rule
    names: tuple[str, ...]  # of the constants in a setting
    settings: tuple[tuple[float, ...], ...]
    make: Callable[..., UpdateRule]
    digest: str = ""  # of the file of one's own rule

    @property
    def is_control(self) -> bool:
        return self.number is None and not self.digest


def _grid(rates: Any, *others: Sequence[float]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(v) for v in setting) for setting in itertools.product(rates, *others))


def _scaled(kind: type[UpdateRule], names: tuple[str, ...]) -> Callable[..., UpdateRule]:
    """Return the maker of a rule whose eta is in units of 1/L."""

    def make(scale: Scale, rate: float, *others: float) -> UpdateRule:
        return kind(rate / scale.largest, **dict(zip(names[1:], others, strict=True)))

    return make


def _absolute(kind: type[UpdateRule], names: tuple[str, ...]) -> Callable[..., UpdateRule]:
    return lambda scale, *setting: kind(**dict(zip(names, setting, strict=True)))


def _of(
    name: str, kind: type[UpdateRule], rates: Any, names: str = "", *others: Sequence[float]
) -> Competitor:
    each = ("eta", *names.split())
    maker = _absolute if rates is LENGTHS else _scaled
    return Competitor(name, kind.number, each, _grid(rates, *others), maker(kind, each))


def _khan2019(scale: Scale, rate: float, share: float, alpha: float) -> UpdateRule:
    return zoo.Khan2019(rate / scale.largest, share * rate / scale.largest, alpha)


def _shin(scale: Scale, rate: float, gamma: float) -> UpdateRule:
    # alpha enters quadratics and local models through gamma alone
    return zoo.Shin2021(rate / scale.largest, 0.5, gamma + 1 / 3)


def _shin_by_momentum(scale: Scale, rate: float, momentum: float) -> UpdateRule:
    # where the diagonal D is a multiple of the identity, the momentum is -eta gamma D
    return _shin(scale, rate, -momentum * scale.largest / (rate * scale.mean))


def _aggarwal(scale: Scale, rate: float, lam: float, gamma: float) -> UpdateRule:
    return zoo.Aggarwal2024(rate / scale.largest, lam / scale.largest, 0.5, gamma + 1 / 3)


def _xie(scale: Scale, rate: float, alpha: float) -> UpdateRule:
    return zoo.Xie2022(
        (rate / scale.largest) ** (1 / alpha), alpha
    )  # the rate that multiplies the gradient


# from the default of `cfgd.integrations` on, in factors of 4: the paper's go down to -100
GAMMAS = (-0.25, -1.0, -4.0, -16.0)
MOMENTA = (0.5, 0.9, 0.97, 0.99)
ORDERS = (0.5, 0.7, 0.9, 0.97)
RULES: tuple[Competitor, ...] = (
    _of("1 Wang", zoo.Wang2017, AROUND_TWO, "alpha delta", ORDERS, (1e-8,)),
    _of("2 Sheng", zoo.Sheng2020, AROUND_TWO, "alpha", (0.7, 0.9, 1.1, 1.3)),
    _of("3 Lou", zoo.Lou2022, AROUND_TWO, "alpha rate", (0.5, 0.8), (0.1, 1.0)),
    _of("4 Xue", zoo.Xue2020, AROUND_TWO, "alpha mu", (0.7, 0.95), (0.9, 0.98)),
    _of("5 Wei", zoo.Wei2020, AROUND_TWO, "alpha", ORDERS),
    _of("6 Taresh", zoo.Taresh2022, AROUND_TWO, "alpha", ORDERS),
    _of("7 Herrera", zoo.Herrera2022, AROUND_TWO, "nu", (0.5, 0.8, 1.2, 1.5)),
    _of("7 Herrera in Adam", zoo.HerreraAdam2022, LENGTHS, "nu", (0.5, 0.8, 1.2, 1.5)),
    _of("8 Thabet", zoo.Thabet2026, AROUND_TWO, "alpha rate", (0.5, 0.9), (0.0, 0.1)),
    Competitor(
        "9 Khan 2019",
        9,
        ("eta", "eta_f / eta", "alpha"),
        _grid(AROUND_TWO, (0.5, 2.0), (0.5, 0.9)),
        _khan2019,
    ),
    _of("10 Khan 2018", zoo.Khan2018, AROUND_TWO, "alpha mix", (0.5, 0.9), (0.3, 0.7)),
    _of("11 Liu", zoo.Liu2023, AROUND_TWO, "mu momentum", (0.7, 1.2), (0.0, 0.95)),
    _of("12 Tan", zoo.Tan2024, BELOW_TWO, "alpha", (1.02, 1.1, 1.3, 1.6)),
    _of("13 Frac-Adam", zoo.FracAdam2025, LENGTHS, "alpha", (0.1, 0.3, 0.6, 0.9)),
    _of("13 AdaGL", zoo.AdaGL2024, LENGTHS, "alpha", (0.1, 0.3, 0.6, 0.9)),
    _of("14 Kan", zoo.Kan2021, AROUND_TWO, "alpha b", (0.7, 0.95), (0.9, 0.98)),
    Competitor(
        "15 Xie", 15, ("eta^alpha", "alpha"), _grid(AROUND_TWO, (0.9, 0.95, 0.98, 0.99)), _xie
    ),
    Competitor("16 Shin (ours)", 16, ("eta", "gamma"), _grid(AROUND_TWO, GAMMAS), _shin),
    Competitor(
        "16 Shin by momentum",
        16,
        ("eta", "-eta gamma D"),
        _grid(AROUND_TWO, MOMENTA),
        _shin_by_momentum,
    ),
    Competitor(
        "16 Aggarwal",
        16,
        ("eta", "lambda", "gamma"),
        _grid(AROUND_TWO, (0.3, 0.9), (-1 / 3, 0.9)),
        _aggarwal,
    ),
)


def _adam(scale: Scale, rate: float, b1: float, one_minus_b2: float) -> UpdateRule:
    return controls.Adam(rate, b1, 1 - one_minus_b2)


CONTROLS: tuple[Competitor, ...] = (
    _of("gradient descent", controls.GradientDescent, ONE_CONSTANT),
    _of("heavy ball", controls.HeavyBall, AROUND_TWO, "momentum", MOMENTA),
    _of("Nesterov", controls.Nesterov, AROUND_TWO, "momentum", MOMENTA),
    Competitor(
        "Adam", None, ("eta", "b1", "1 - b2"), _grid(LENGTHS, (0.5, 0.9), (1e-2, 1e-3)), _adam
    ),
)


def own(kind: type[UpdateRule], digest: str) -> Competitor:
    """Return the competitor of a user's rule: its `grid`, or rates around 2/L alone.

    `grid` is a class attribute: the values of each constant by name, the first being the rate in
    units of 1/L. It may have as many settings as the grids of the other rules.
    """
    grid = dict(getattr(kind, "grid", {"eta": ONE_CONSTANT}))
    names, settings = tuple(grid), _grid(*grid.values()) if grid else ()
    if not 0 < len(settings) <= RATES * OTHERS:
        raise ValueError(f"it must have 1 to {RATES * OTHERS} settings, not {len(settings)}.")
    first = names[0]

    def make(scale: Scale, rate: float, *others: float) -> UpdateRule:
        return kind(**{first: rate / scale.largest, **dict(zip(names[1:], others, strict=True))})

    return Competitor(kind.__name__, None, names, settings, make, digest)


def thinned(one: Competitor) -> Competitor:
    """Return the competitor with every third rate, of `--quick`; a small grid is kept."""
    if len(one.settings) <= RATES * OTHERS // 3:
        return one
    rates = list(dict.fromkeys(setting[0] for setting in one.settings))
    kept = set(rates[::3])
    return dataclasses.replace(
        one, settings=tuple(setting for setting in one.settings if setting[0] in kept)
    )
