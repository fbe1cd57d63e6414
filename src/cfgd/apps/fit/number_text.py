"""Numbers as people write them: 1,234.5 and 1.234,5, $ 5, 12 %, (3.50).

A text is a number with a decimal point, with a decimal comma, or with either. Plain integers and
texts such as 1,234 are both, so that only other values of the file tell which was meant.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

POINT, COMMA = ".", ","
DECIMALS = (POINT, COMMA)
NAMES = {POINT: "decimal points", COMMA: "decimal commas"}
# what groups of three digits are separated by besides the comma or the point: a space, spaces that
# do not break a line, and the apostrophe of Switzerland
GROUP_MARKS = r" \x{00a0}\x{2009}\x{202f}'’"
CURRENCY = (
    r"(?:US|CA|AU|NZ|HK|R|S)?\$|\p{Sc}|(?i:EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|"
    r"CAD|AUD|NZD|BRL|MXN|ZAR|TRY|RUB|KRW|SGD|HKD|kr\.?|Fr\.|zł|Kč|Ft)"
)
# a power of ten, also as Fortran writes it, 0.1D+02
POWER = r"[eE][+\-]?\d+|[dD][+\-]\d{2,3}"
# a sign, a currency and digits, with a currency, a percent sign, the brackets of bookkeeping or the
# minus behind the digits of old mainframes
NUMBER = (
    r"^(?P<bracket>\(?)\s*(?P<sign>[+\-−]?)\s*(?P<before>(?:" + CURRENCY + r")?)\s*"
    r"(?P<inner>[+\-−]?)\s*(?P<body>[.,]?\d[\d.," + GROUP_MARKS + r"]*(?:" + POWER + r")?)"
    r"(?P<behind>[\-−–—]{0,2})\s*(?P<after>(?:" + CURRENCY + r")?)(?P<percent>%?)\s*\)?$"
)

# Arabic, Persian and Hindi digits, and those of full width of China and Japan, with their signs.
OTHER_DIGITS = r"[\x{0660}-\x{0669}\x{06f0}-\x{06f9}\x{0966}-\x{096f}\x{ff10}-\x{ff19}]"
TO_ASCII = {first + i: str(i) for first in (0x0660, 0x06F0, 0x0966, 0xFF10) for i in range(10)} | {
    ord(sign): plain for sign, plain in zip("٫٬．，－％", ".,.,-%", strict=True)
}

# What stands behind the digits of a measurement: kg, °C, m/s, kg/m3.
UNIT = r"^.*\d[.,]?\s*(?P<unit>[\p{L}°‰][\p{L}\d°‰²³/·^*\-]{0,11})$"

# Units of one quantity, and words for thousands: numbers with several of them are not comparable.
# fmt: off
MULTIPLES = frozenset((
    "k", "K", "M", "m", "B", "T", "bn", "mn", "tn", "Tsd", "Mio", "Mrd", "mg", "g", "kg", "t", "lb",
    "lbs", "oz", "µm", "mm", "cm", "km", "in", "ft", "yd", "mi", "ms", "s", "sec", "min", "h", "hr",
    "hrs", "d", "ml", "cl", "l", "L", "W", "kW", "MW", "Wh", "kWh", "MWh", "kB", "KB", "MB", "GB",
    "TB",
))
# fmt: on
# letters for the sign of a number: debit and credit, and the points of the compass
SIGN_LETTERS = frozenset(("CR", "DR", "Cr", "Dr", "N", "S", "E", "W"))


def _body(decimal: str) -> str:
    """Return the pattern of the digits of a number with this decimal sign.

    Groups are of three digits, or of two before the last three, as in India. Nobody writes
    thousands and a power of ten.
    """
    sign, other = (r"\.", ",") if decimal == POINT else (",", r"\.")
    groups = [rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+" for mark in (other, f"[{GROUP_MARKS}]")]
    groups.append(rf"[1-9]\d?(?:{other}\d{{2}})+{other}\d{{3}}")
    grouped = "|".join(groups)
    return (
        rf"^(?:(?:\d+|{grouped})(?:{sign}\d*)?|{sign}\d+"
        rf"|(?:\d+(?:{sign}\d*)?|{sign}\d+)(?:{POWER}))$"
    )


class NumberTexts:
    """An array of texts, none of them null, read as numbers.

    Attributes
    ----------
    matches : dict of decimal sign to mask
        Which texts are numbers with this decimal sign.
    percent : mask
        Which texts end in a percent sign.
    minus_behind : mask
        Which texts have their minus behind the digits.
    currency : list of texts
        The currency sign of each text, "" for none.

    >>> texts = NumberTexts(pa.array(["1,234.5", "1,234", "0,5", "12 %", "-3 €", "x"]))
    >>> print(texts.values(".")[[0, 1, 3, 4]], texts.values(",")[[1, 2]])
    [ 1.2345e+03  1.2340e+03  1.2000e-01 -3.0000e+00] [1.234 0.5  ]
    >>> print(texts.matches["."], texts.matches[","])
    [ True  True False  True  True False] [False  True  True  True  True False]
    """

    def __init__(self, texts: pa.Array) -> None:
        texts = _with_ascii_digits(texts)
        found = pc.extract_regex(pc.utf8_trim_whitespace(texts), NUMBER)
        part = {
            name: pc.fill_null(pc.struct_field(found, name), "")
            for name in ("bracket", "sign", "before", "inner", "body", "behind", "after", "percent")
        }
        self._body = pc.utf8_trim_whitespace(part["body"])
        signs = ("sign", "inner", "behind")
        minus = [_is_one_of(part[name], ["-", "−"]) for name in signs]
        # 5,- and 5.-- are prices without cents
        no_cents = _mask(pc.match_substring_regex(self._body, "[.,]$"))
        minus[2] &= ~no_cents
        is_dash = ~_is_one_of(part["behind"], [""]) & ~minus[2]
        self._negative = np.logical_xor.reduce([_is_one_of(part["bracket"], ["("]), *minus])
        self.minus_behind = minus[2]
        # +-5 and (-5) are no numbers; a bracket is closed, and no other is
        count = sum((~_is_one_of(part[name], [""])).astype(int) for name in signs[:2]) + minus[2]
        opened = ~_is_one_of(part["bracket"], [""])
        closed = _mask(pc.ends_with(pc.utf8_trim_whitespace(texts), ")"))
        valid = (count + opened <= 1) & (opened == closed) & (no_cents | ~is_dash)
        self.percent = _is_one_of(part["percent"], ["%"])
        before, after = part["before"].to_pylist(), part["after"].to_pylist()
        self.currency = [(a or b).upper() for a, b in zip(before, after, strict=True)]
        valid &= ~np.array([bool(a and b) for a, b in zip(before, after, strict=True)], bool)
        self.matches = {
            decimal: valid & _mask(pc.match_substring_regex(self._body, _body(decimal)))
            for decimal in DECIMALS
        }

    @property
    def has_group_mark(self) -> np.ndarray:
        """Which texts are numbers of either kind that are not the same number."""
        both = self.matches[POINT] & self.matches[COMMA]
        return both & _mask(pc.match_substring_regex(self._body, "[.,]"))

    def has_sign(self, mark: str) -> np.ndarray:
        """Return which texts have a point, or a comma, among their digits."""
        return _mask(pc.match_substring(self._body, mark))

    def values(self, decimal: str) -> np.ndarray:
        """Return the numbers, with NaN for texts that are none with this decimal sign."""
        other = COMMA if decimal == POINT else POINT
        digits = pc.replace_substring_regex(self._body, rf"[{other}{GROUP_MARKS}]", "")
        digits = pc.replace_substring(digits, decimal, POINT)
        digits = pc.replace_substring_regex(digits, "[dD]", "e")
        digits = pc.if_else(pa.array(self.matches[decimal]), digits, pa.scalar("nan"))
        values = np.array(digits.cast(pa.float64()).to_numpy(zero_copy_only=False))
        values[self._negative] *= -1
        values[self.percent] /= 100
        return values


def units_of(texts: pa.Array) -> list[str]:
    """Return what stands behind the digits of each text that is a number with a unit, else "".

    >>> units_of(pa.array(["1.5 kg", "20°C", "12", "A4", "3 Main Street"]))
    ['kg', '°C', '', '', '']
    """
    found = pc.extract_regex(pc.utf8_trim_whitespace(texts), UNIT)
    units = pc.fill_null(pc.struct_field(found, "unit"), "").to_pylist()
    numbers = without_unit(texts, pa.array(units, pa.string()))
    matches = NumberTexts(numbers).matches
    known = matches[POINT] | matches[COMMA]
    return [unit if is_number else "" for unit, is_number in zip(units, known, strict=True)]


def without_unit(texts: pa.Array, units: pa.Array | str) -> pa.Array:
    """Return texts without the unit at their end; `units` has one for each, or one for all."""
    trimmed = pc.utf8_trim_whitespace(texts)
    given = [units] * len(texts) if isinstance(units, str) else units.to_pylist()
    pairs = zip(trimmed.to_pylist(), given, strict=True)
    return pa.array([text.removesuffix(unit).rstrip() for text, unit in pairs], pa.string())


def _with_ascii_digits(texts: pa.Array) -> pa.Array:
    """Return texts with the digits and signs of numbers in ASCII.

    >>> _with_ascii_digits(pa.array(["١٢٫٥", "１，０００", "x"])).to_pylist()
    ['12.5', '1,000', 'x']
    """
    if not pc.any(pc.match_substring_regex(texts, OTHER_DIGITS)).as_py():
        return texts
    return pa.array([text.translate(TO_ASCII) for text in texts.to_pylist()], pa.string())


def _is_one_of(texts: pa.Array, known: list[str]) -> np.ndarray:
    return _mask(pc.is_in(texts, pa.array(known, texts.type)))


def _mask(found: pa.Array) -> np.ndarray:
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)
