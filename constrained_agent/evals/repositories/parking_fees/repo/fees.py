"""What it costs to park."""

ZONES = {
    "street": (250, 300),
    "garage": (180, 150),
    "outskirts": (80, 40),
}
"""By zone: cents for the first hour, and for each further hour that is begun."""

MAX_HOURS = 24


def parking_cents(hours, zone):
    """The fee for one stay in cents.

    Raises ValueError if the stay is no stay or too long, or the zone is unknown.
    """
    if zone not in ZONES:
        raise ValueError(f"unknown zone {zone!r}")
    if not 0 < hours <= MAX_HOURS:
        raise ValueError(f"nobody parks for {hours} hours")
    first, further = ZONES[zone]
    begun = -int(-hours // 1)
    return first + (begun - 1) * further
