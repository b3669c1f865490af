"""Addresses made of titles."""

import re
import unicodedata

_MAX_LENGTH = 48


def slug(title):
    """A title as the last part of an address: small letters, digits, single hyphens."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode("ascii")
    words = re.findall(r"[a-z0-9]+", plain.lower())
    if not words:
        raise ValueError(f"nothing of {title!r} can stand in an address")
    while len("-".join(words)) > _MAX_LENGTH and len(words) > 1:
        words.pop()
    return "-".join(words)


def distinct(titles):
    """One slug for each title; the second of two equal ones ends in -2, the third in -3."""
    seen = {}
    found = []
    for title in titles:
        name = slug(title)
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return found
