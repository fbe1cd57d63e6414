"""Numbers with their standard errors, as papers print them: 1.234(56)."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal

# Significant digits of an error: with one, rounding changes an error of 1.5 by a third.
DIGITS = 2
# The least power of ten that is written without an exponent, as in Python's format "g".
LEAST_EXPONENT = -4
# Digits of a number without an error, as in Python's format "g".
PLAIN_DIGITS = 6
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def with_error(value: float, error: float, style: str = "text") -> str:
    """Return a number with its standard error in brackets: 1.234(56) means 1.234 +- 0.056.

    The error has two significant digits, and the value ends at the same decimal place. An error
    with digits on both sides of the decimal point has one, too: 123.4(5.6). Where the last digit
    would be left of the decimal point, or the first one far to its right, both get an exponent:
    1.234(56)e+04. An error below the rounding of the value is 0: the value has all digits.

    Parameters
    ----------
    value, error : float
        The number and its standard error. An error that is NaN stands for none: the value alone.
    style : {"text", "markdown", "latex"}
        An exponent is e+04 in text, ×10⁴ in Markdown, a formula in LaTeX.

    Examples
    --------
    >>> import math
    >>> from cfgd.fitting.digits import with_error
    >>> print(with_error(1.2341, 0.0561), with_error(-12345.6, 789.0), with_error(2.0, math.inf))
    1.234(56) -1.235(79)e+04 2(inf)
    """
    value, error = float(value), float(error)
    if not math.isfinite(value) or math.isnan(error):
        return plain(value, style)
    if math.isinf(error):
        return _plain(f"{value:.{PLAIN_DIGITS}g}", "(inf)", style)
    if error < math.ulp(value):
        return _plain(repr(value), "(0)", style)
    rounded = _rounded(error)
    place = rounded.adjusted() - (DIGITS - 1)
    number = Decimal(repr(value)).quantize(Decimal(1).scaleb(place), ROUND_HALF_EVEN)
    number = number or abs(number)  # 0.000(10), not -0.000(10)
    first = max(rounded.adjusted(), number.adjusted()) if number else rounded.adjusted()
    shift = first if place > 0 or first < LEAST_EXPONENT else 0
    number, rounded = number.scaleb(-shift), rounded.scaleb(-shift)
    inside = f"{rounded:f}"
    if rounded < 1:
        inside = inside.replace(".", "").lstrip("0")
    return _joined(f"{number:f}({inside})", shift, style)


def _rounded(error: float) -> Decimal:
    """Return an error with two significant digits; 0.00996 becomes 0.010, not 0.0100."""
    exact = Decimal(repr(error))
    for _ in range(2):  # rounding up to a power of ten adds a digit, which the second turn removes
        place = exact.adjusted() - (DIGITS - 1)
        exact = exact.quantize(Decimal(1).scaleb(place), ROUND_HALF_EVEN)
    return exact


def plain(value: float, style: str = "text") -> str:
    """Return a number without an error, with six digits."""
    return _plain(f"{value:.{PLAIN_DIGITS}g}", "", style)


def exact(value: float, style: str = "text") -> str:
    """Return a number with all its digits."""
    return _plain(repr(float(value)), "", style)


def _plain(value: str, bracket: str, style: str) -> str:
    mantissa, _, exponent = value.partition("e")
    return _joined(mantissa.removesuffix(".0") + bracket, int(exponent or 0), style)


def _joined(number: str, exponent: int, style: str) -> str:
    if style == "latex":
        power = f" \\times 10^{{{exponent}}}" if exponent else ""
        number = number.replace("inf", "\\infty").replace("nan", "\\mathrm{nan}")
        return f"${number}{power}$"
    if style == "markdown":
        return f"{number}×10{str(exponent).translate(SUPERSCRIPTS)}" if exponent else number
    return f"{number}e{exponent:+03d}" if exponent else number
