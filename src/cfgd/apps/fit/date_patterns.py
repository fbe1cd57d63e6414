"""How dates and times of day are written, as patterns, and the names of months."""

from __future__ import annotations

import unicodedata

DAY_FIRST, MONTH_FIRST = "dmy", "mdy"
CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d+)?))?"
NOON = r"\s*(?P<noon>(?:[AaPp]\.?[Mm]\.?)?)"
ZONE = r"(?P<zone>(?:Z|UTC|GMT|[+\-]\d{2}(?::?\d{2})?)?)"
# SAS and the logs of web servers have a colon between date and time
TIME = rf"(?:(?:[T ,]+|:){CLOCK}{NOON}\s*{ZONE})?$"
WEEKDAY = r"^(?:\p{L}{2,10}\.?,? +)?"
MONTH = r"(?:de +)?(?P<month>\p{L}{3,12})"  # 1 de enero de 2024
YEAR = r"(?P<year>(?:1[5-9]|2[01])\d{2})"  # where a date has no day: other numbers are more usual
COMPACT = r"^(?P<year>(?:19|20)\d{2})(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])$"
PATTERNS = {
    "ymd": r"^(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})" + TIME,
    "dotted": WEEKDAY + r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4}|\d{2})" + TIME,
    "named": rf"{WEEKDAY}(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?[ \-/]*{MONTH}"
    r"[ .,\-/]*(?:de +)?(?P<year>\d{4}|\d{2})" + TIME,
    "named first": rf"{WEEKDAY}{MONTH}\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}})"
    + TIME,
    "ctime": rf"{WEEKDAY}{MONTH} +(?P<day>\d{{1,2}}) {CLOCK}{NOON}\s*{ZONE} (?P<year>\d{{4}})$",
    "year and month": rf"^{YEAR}[-/](?P<month>\d{{1,2}})$",
    "month and year": rf"^(?P<month>\d{{1,2}})[-/.]{YEAR}$",
    "name and year": rf"^{MONTH}[ .,\-/]+{YEAR}$",
    "quarter": rf"^{YEAR}[ \-/]?[Qq](?P<quarter>[1-4])$",
    "quarter first": rf"^[Qq](?P<quarter>[1-4])[ \-/]?{YEAR}$",
    "compact": COMPACT,
    "compact with time": COMPACT[:-1] + r"T(?P<hour>\d{2})(?P<minute>\d{2})(?P<second>(?:\d{2})?)"
    rf"(?P<noon>){ZONE}$",
    "Japan and China": r"^(?P<year>\d{4})年(?P<month>\d{1,2})月(?P<day>\d{1,2})日$",
    "week": rf"^{YEAR}-?[Ww](?P<week>\d{{2}})(?:-?(?P<weekday>[1-7]))?$",
}
# the order of day and month is not in the text
NUMERIC = r"(?P<{}>\d{{1,2}})[/\-](?P<{}>\d{{1,2}})[/\-](?P<year>\d{{4}}|\d{{2}})"
ORDERED = {
    DAY_FIRST: WEEKDAY + NUMERIC.format("day", "month") + TIME,
    MONTH_FIRST: WEEKDAY + NUMERIC.format("month", "day") + TIME,
}
TIME_OF_DAY = rf"^{CLOCK}{NOON}$"
DURATION = (
    r"^(?P<sign>-?)(?:(?P<days>\d+) days?,? +)?"
    r"(?P<hour>\d{1,6}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d+)?))?$"
)
# 1h 30m and PT1H30M; of the first at least two parts, since 5 m may be a length
_SECOND = r"\d+(?:[.,]\d+)?"
DURATION_IN_WORDS = (
    r"^(?P<sign>-?)(?:(?P<days>\d+) ?d(?:ays?)?,? *)?(?:(?P<hour>\d+) ?h(?:rs?|ours?)?,? *)?"
    r"(?:(?P<minute>\d+) ?m(?:ins?|inutes?)?,? *)?"
    rf"(?:(?P<second>{_SECOND}) ?s(?:ecs?|econds?)?)?$"
)
ISO_DURATION = (
    r"^(?P<sign>-?)P(?:(?P<days>\d+)D)?(?:T(?:(?P<hour>\d+)H)?(?:(?P<minute>\d+)M)?"
    rf"(?:(?P<second>{_SECOND})S)?)?$"
)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# The names of months, without accents, in English, German, French, Spanish, Italian, Portuguese,
# Dutch, Swedish, Danish, Polish, Turkish and Russian; any beginning of three letters or more is
# one, too.
NAMES_OF_MONTHS = (
    "january januar janvier enero gennaio janeiro januari styczen stycznia ocak январь января",
    "february februar fevrier febrero febbraio fevereiro februari luty lutego subat февраль "
    "февраля",
    "march marz maerz mrz mars marzo marco maart marts marzec marca март марта",
    "april avril abril aprile kwiecien kwietnia nisan апрель апреля",
    "may mai mayo maggio maio mei maj maja mayıs маи мая",
    "june juni juin junio giugno junho czerwiec czerwca haziran июнь июня",
    "july juli juillet julio luglio julho lipiec lipca temmuz июль июля",
    "august aout agosto augustus augusti sierpien sierpnia agustos август августа",
    "september septembre septiembre settembre setembro wrzesien wrzesnia eylul сентябрь сентября",
    "october oktober octobre octubre ottobre outubro pazdziernik pazdziernika ekim октябрь октября",
    "november novembre noviembre novembro listopad listopada kasım ноябрь ноября",
    "december dezember decembre diciembre dicembre dezembro grudzien grudnia aralık декабрь "
    "декабря",
)


def month_number(text: str) -> int:
    """Return the month of digits or of a name; 0 for other words.

    >>> [month_number(text) for text in ("12", "Sept", "März", "juillet", "soon")]
    [12, 9, 3, 7, 0]
    """
    if text.isdigit():
        return int(text)
    letters = unicodedata.normalize("NFD", text.lower())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    for number, names in enumerate(NAMES_OF_MONTHS, 1):
        if any(name.startswith(plain) for name in names.split()):
            return number
    return 0
