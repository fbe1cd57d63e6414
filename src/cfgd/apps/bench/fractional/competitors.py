"""The rules and baselines with their hyperparameter grids, of the same size for all.

A setting is a learning rate and at most two other hyperparameters. Rules that multiply the gradient
have learning rates in units of 1/L, where L is the largest eigenvalue of the Hessian at the initial
point; the learning rates of Adam and of rules based on it are step lengths. The grids are the same
for all problems. They were fixed before the full run, except for the corrections that
docs/fractional.md lists: a common range of learning rates, the values of gamma of rule 16, and the
entry "16 Shin by momentum".
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cfgd import zoo
from cfgd.apps.bench.fractional import baselines
from cfgd.zoo.update_rule import UpdateRule

LBFGS = "L-BFGS"
RATES, OTHERS = 12, 4  # size of a grid: learning rates, settings of the other hyperparameters

# eta L around 1.9, the largest multiple of 0.1 at which gradient descent converges on a quadratic.
# Larger values are for factors D^(1 - alpha) < 1 and for curvatures that decrease during a run.
AROUND_TWO = 1.9 * 2.0 ** np.arange(6, 6 - RATES, -1)
# factors D^(1 - alpha) > 1 need smaller learning rates
BELOW_TWO = 1.9 * 4.0 ** np.arange(3, 3 - RATES, -1)
# step lengths of Adam and of rules based on it
LENGTHS = np.logspace(-3.5, 0.5, RATES)
ONE_CONSTANT = 1.9 * 2.0 ** (6 - np.arange(RATES * OTHERS) / OTHERS)


class Scale(NamedTuple):
    """The largest curvature at the start, and the mean of the diagonal of the Hessian there."""

    largest: float
    mean: float


@dataclasses.dataclass(frozen=True)
class Competitor:
    """A rule with its name and its settings; `make(scale, *setting)` returns the rule."""

    name: str
    number: int | None  # in the table of docs/fractional.md; None for baselines and custom rules
    names: tuple[str, ...]  # of the hyperparameters in a setting
    settings: tuple[tuple[float, ...], ...]
    make: Callable[..., UpdateRule]
    digest: str = ""  # of the file of a custom rule

    @property
    def is_baseline(self) -> bool:
        return self.number is None and not self.digest


def _grid(rates: Any, *others: Sequence[float]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(v) for v in setting) for setting in itertools.product(rates, *others))


def _scaled(kind: type[UpdateRule], names: tuple[str, ...]) -> Callable[..., UpdateRule]:
    """Return a function that makes the rule with eta in units of 1/L."""

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
    # on quadratics and local models the direction depends on alpha through gamma only
    return zoo.Shin2021(rate / scale.largest, 0.5, gamma + 1 / 3)


def _shin_by_momentum(scale: Scale, rate: float, momentum: float) -> UpdateRule:
    # if the diagonal D is a multiple of the identity, the momentum is -eta gamma D
    return _shin(scale, rate, -momentum * scale.largest / (rate * scale.mean))


def _aggarwal(scale: Scale, rate: float, lam: float, gamma: float) -> UpdateRule:
    return zoo.Aggarwal2024(rate / scale.largest, lam / scale.largest, 0.5, gamma + 1 / 3)


def _xie(scale: Scale, rate: float, alpha: float) -> UpdateRule:
    return zoo.Xie2022(
        (rate / scale.largest) ** (1 / alpha), alpha
    )  # so that eta^alpha, which multiplies the gradient, is in units of 1/L


# from the default of `cfgd.integrations`, by factors of 4; the paper uses values down to -100
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
    return baselines.Adam(rate, b1, 1 - one_minus_b2)


BASELINES: tuple[Competitor, ...] = (
    _of("gradient descent", baselines.GradientDescent, ONE_CONSTANT),
    _of("heavy ball", baselines.HeavyBall, AROUND_TWO, "momentum", MOMENTA),
    _of("Nesterov", baselines.Nesterov, AROUND_TWO, "momentum", MOMENTA),
    Competitor(
        "Adam", None, ("eta", "b1", "1 - b2"), _grid(LENGTHS, (0.5, 0.9), (1e-2, 1e-3)), _adam
    ),
)


def own(kind: type[UpdateRule], digest: str) -> Competitor:
    """Return the competitor of a custom rule, with its `grid` or with learning rates around 2/L.

    The class attribute `grid` is a dict of the values of each hyperparameter; the first one is the
    learning rate in units of 1/L. It may have as many settings as the grids of the other rules.
    """
    grid = dict(getattr(kind, "grid", {"eta": ONE_CONSTANT}))
    names, settings = tuple(grid), _grid(*grid.values()) if grid else ()
    if not 0 < len(settings) <= RATES * OTHERS:
        raise ValueError(f"the grid must have 1 to {RATES * OTHERS} settings, got {len(settings)}.")
    first = names[0]

    def make(scale: Scale, rate: float, *others: float) -> UpdateRule:
        return kind(**{first: rate / scale.largest, **dict(zip(names[1:], others, strict=True))})

    return Competitor(kind.__name__, None, names, settings, make, digest)


def thinned(one: Competitor) -> Competitor:
    """Return the competitor with every third learning rate; a small grid is not reduced."""
    if len(one.settings) <= RATES * OTHERS // 3:
        return one
    rates = list(dict.fromkeys(setting[0] for setting in one.settings))
    kept = set(rates[::3])
    return dataclasses.replace(
        one, settings=tuple(setting for setting in one.settings if setting[0] in kept)
    )
