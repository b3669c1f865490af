"""Reads the three forms in which dates reach us."""

import datetime
import re

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)

ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
SLASHES = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")
NAMED = re.compile(r"(\d{1,2}) ([A-Za-z]+) (\d{4})")


def parse_date(text):
    """Turn 2024-03-09, 09/03/2024 or 9 March 2024 into a datetime.date."""
    match = ISO.fullmatch(text)
    if match:
        year, month, day = map(int, match.groups())
        return datetime.date(year, month, day)

    match = SLASHES.fullmatch(text)
    if match:
        month, day, year = map(int, match.groups())
        return datetime.date(year, month, day)

    match = NAMED.fullmatch(text)
    if match:
        day, name, year = match.groups()
        month = MONTHS.index(name.lower())
        return datetime.date(int(year), month, int(day))

    raise ValueError(f"not a date: {text!r}")
