"""Reads NMEA 0183, the sentences that instruments on board send to each other.

    >>> read("$HEHDT,274.07,T*19").heading_deg
    274.07

A sentence is `$`, two letters for the talker, three for its kind, fields set apart by commas, and a checksum after
`*`. Each kind has a named tuple and a parser, registered with the number of fields that it needs at least. Fields that
an instrument leaves empty become None. Angles are degrees, south and west negative; distances are nautical miles
and depths metres, whatever else a sentence repeats them in. Times are kept as they come (hhmmss.ss, UTC).
"""

from functools import reduce
from operator import xor
from typing import NamedTuple, Optional, Tuple

MAX_LENGTH = 82
"""Characters of a sentence, with the line ending; some instruments send more, and are read all the same."""

METRES_PER_FOOT = 0.3048
METRES_PER_FATHOM = 1.8288
KNOTS_PER_KMH = 1 / 1.852
KNOTS_PER_MPS = 3600 / 1852

TALKERS = {
    "AG": "autopilot, general",
    "AI": "AIS transponder",
    "AP": "autopilot, magnetic",
    "BD": "BeiDou receiver",
    "CD": "digital selective calling",
    "EC": "electronic chart",
    "GA": "Galileo receiver",
    "GB": "BeiDou receiver",
    "GL": "GLONASS receiver",
    "GN": "receiver of several systems",
    "GP": "GPS receiver",
    "HC": "magnetic compass",
    "HE": "gyro compass, north seeking",
    "HN": "gyro compass, not north seeking",
    "II": "integrated instruments",
    "IN": "integrated navigation",
    "RA": "radar",
    "SD": "depth sounder",
    "SN": "electronic positioning, other",
    "TI": "rate of turn indicator",
    "VD": "speed log, Doppler",
    "VW": "speed log, mechanical",
    "WI": "weather instruments",
    "YX": "transducer",
}

FIX_QUALITY = {
    "0": "none",
    "1": "autonomous",
    "2": "differential",
    "3": "precise",
    "4": "rtk fixed",
    "5": "rtk float",
    "6": "dead reckoning",
    "7": "manual",
    "8": "simulated",
}

FIX_MODES = {
    "A": "autonomous",
    "D": "differential",
    "E": "dead reckoning",
    "F": "rtk float",
    "M": "manual",
    "N": "none",
    "P": "precise",
    "R": "rtk fixed",
    "S": "simulated",
}

FIX_DIMENSIONS = {"1": 0, "2": 2, "3": 3}

TRANSDUCERS = {
    "A": "angle",
    "C": "temperature",
    "D": "displacement",
    "F": "frequency",
    "G": "generic",
    "H": "humidity",
    "I": "current",
    "L": "salinity",
    "N": "force",
    "P": "pressure",
    "R": "flow rate",
    "S": "switch",
    "T": "speed of rotation",
    "U": "voltage",
    "V": "volume",
}


class NmeaError(ValueError):
    """A line that is no sentence, is damaged, or is of a kind that is not read here."""


# Fields


def _number(text):
    """A decimal number, or None for an empty field."""
    return float(text) if text else None


def _whole(text):
    """A whole number, or None for an empty field."""
    return int(text) if text else None


def _text(text):
    """A text, or None for an empty field."""
    return text or None


def _scaled(text, factor):
    """A number in another unit."""
    return float(text) * factor if text else None


def _valid(text):
    """Whether a status field says that the data can be used."""
    return text == "A"


def _signed(text, side, negative):
    """A number whose sign stands in a field of its own."""
    if not text:
        return None
    return -float(text) if side == negative else float(text)


def _angle(text, n_degrees):
    """Degrees of (d)ddmm.mmm: n_degrees digits of degrees, then minutes."""
    return int(text[:n_degrees]) + float(text[n_degrees:]) / 60


def _latitude(text, side):
    """Degrees of ddmm.mmm and N or S."""
    if not text:
        return None
    if side not in ("N", "S"):
        raise NmeaError(f"a latitude is N or S, not {side!r}")
    return -_angle(text, 2) if side == "S" else _angle(text, 2)


def _longitude(text, side):
    """Degrees of dddmm.mmm and E or W."""
    if not text:
        return None
    if side not in ("E", "W"):
        raise NmeaError(f"a longitude is E or W, not {side!r}")
    return -_angle(text, 3) if side == "W" else _angle(text, 3)


def _speed_kn(text, unit):
    """A speed in knots, by the letter of its unit."""
    factors = {"N": 1.0, "K": KNOTS_PER_KMH, "M": KNOTS_PER_MPS}
    if not text:
        return None
    if unit not in factors:
        raise NmeaError(f"a speed in unit {unit!r}")
    return float(text) * factors[unit]


# Sentences

_PARSERS = {}


def _sentence(kind, n_fields):
    """Registers a parser for sentences of a kind that have so many fields or more."""

    def register(parser):
        assert kind not in _PARSERS, kind
        _PARSERS[kind] = (n_fields, parser)
        return parser

    return register


class Fix(NamedTuple):
    """GGA, GNS: where a receiver is."""

    time: Optional[str]
    latitude: Optional[float]
    longitude: Optional[float]
    quality: str
    n_satellites: Optional[int]
    hdop: Optional[float]
    altitude_m: Optional[float]
    geoid_m: Optional[float]


@_sentence("GGA", 14)
def parse_gga(fields):
    """Position fix of one system."""
    return Fix(
        time=_text(fields[0]),
        latitude=_latitude(fields[1], fields[2]),
        longitude=_longitude(fields[3], fields[4]),
        quality=FIX_QUALITY.get(fields[5], "none"),
        n_satellites=_whole(fields[6]),
        hdop=_number(fields[7]),
        altitude_m=_number(fields[8]),
        geoid_m=_number(fields[10]),
    )


@_sentence("GNS", 12)
def parse_gns(fields):
    """Position fix of several systems; the mode has one letter for each of them."""
    modes = [FIX_MODES.get(letter, "none") for letter in fields[5]]
    return Fix(
        time=_text(fields[0]),
        latitude=_latitude(fields[1], fields[2]),
        longitude=_longitude(fields[3], fields[4]),
        quality=next((mode for mode in modes if mode != "none"), "none"),
        n_satellites=_whole(fields[6]),
        hdop=_number(fields[7]),
        altitude_m=_number(fields[8]),
        geoid_m=_number(fields[9]),
    )


class Position(NamedTuple):
    """GLL: latitude and longitude alone."""

    time: Optional[str]
    latitude: Optional[float]
    longitude: Optional[float]
    valid: bool


@_sentence("GLL", 6)
def parse_gll(fields):
    """Geographic position."""
    return Position(
        time=_text(fields[4]),
        latitude=_latitude(fields[0], fields[1]),
        longitude=_longitude(fields[2], fields[3]),
        valid=_valid(fields[5]),
    )


class Minimum(NamedTuple):
    """RMC: the least that a navigator wants to know."""

    time: Optional[str]
    valid: bool
    latitude: Optional[float]
    longitude: Optional[float]
    speed_kn: Optional[float]
    course_deg: Optional[float]
    day: Optional[str]
    variation_deg: Optional[float]


@_sentence("RMC", 11)
def parse_rmc(fields):
    """Recommended minimum; the day is ddmmyy."""
    return Minimum(
        time=_text(fields[0]),
        valid=_valid(fields[1]),
        latitude=_latitude(fields[2], fields[3]),
        longitude=_longitude(fields[4], fields[5]),
        speed_kn=_number(fields[6]),
        course_deg=_number(fields[7]),
        day=_text(fields[8]),
        variation_deg=_signed(fields[9], fields[10], "W"),
    )


class SatellitesUsed(NamedTuple):
    """GSA: which satellites a fix was made of, and how well they stand."""

    automatic: bool
    dimensions: int
    numbers: Tuple[int, ...]
    pdop: Optional[float]
    hdop: Optional[float]
    vdop: Optional[float]


@_sentence("GSA", 17)
def parse_gsa(fields):
    """Active satellites; twelve places for their numbers."""
    return SatellitesUsed(
        automatic=fields[0] == "A",
        dimensions=FIX_DIMENSIONS.get(fields[1], 0),
        numbers=tuple(int(number) for number in fields[2:14] if number),
        pdop=_number(fields[14]),
        hdop=_number(fields[15]),
        vdop=_number(fields[16]),
    )


class Satellite(NamedTuple):
    """One satellite of a GSV sentence."""

    number: int
    elevation_deg: Optional[int]
    azimuth_deg: Optional[int]
    snr_db: Optional[int]


class SatellitesInView(NamedTuple):
    """GSV: one part of the list of satellites above the horizon."""

    n_parts: int
    part: int
    n_in_view: int
    satellites: Tuple[Satellite, ...]


@_sentence("GSV", 3)
def parse_gsv(fields):
    """Satellites in view, up to four in a sentence."""
    found = []
    for start in range(3, len(fields) - 3, 4):
        number, elevation, azimuth, snr = fields[start : start + 4]
        if number:
            found.append(Satellite(int(number), _whole(elevation), _whole(azimuth), _whole(snr)))
    return SatellitesInView(int(fields[0]), int(fields[1]), int(fields[2]), tuple(found))


class Errors(NamedTuple):
    """GST, GBS: how far a fix may be off, in metres."""

    time: Optional[str]
    latitude_m: Optional[float]
    longitude_m: Optional[float]
    altitude_m: Optional[float]


@_sentence("GST", 8)
def parse_gst(fields):
    """Standard deviations of a fix."""
    return Errors(
        time=_text(fields[0]),
        latitude_m=_number(fields[5]),
        longitude_m=_number(fields[6]),
        altitude_m=_number(fields[7]),
    )


@_sentence("GBS", 8)
def parse_gbs(fields):
    """Expected errors of a fix, should one satellite be faulty."""
    return Errors(
        time=_text(fields[0]),
        latitude_m=_number(fields[1]),
        longitude_m=_number(fields[2]),
        altitude_m=_number(fields[3]),
    )


class Track(NamedTuple):
    """VTG: over ground."""

    course_true_deg: Optional[float]
    course_magnetic_deg: Optional[float]
    speed_kn: Optional[float]


@_sentence("VTG", 8)
def parse_vtg(fields):
    """Track made good and speed over ground; knots, or else the km/h."""
    return Track(
        course_true_deg=_number(fields[0]),
        course_magnetic_deg=_number(fields[2]),
        speed_kn=_number(fields[4]) if fields[4] else _speed_kn(fields[6], "K"),
    )


class ThroughWater(NamedTuple):
    """VHW: heading and speed through the water."""

    heading_true_deg: Optional[float]
    heading_magnetic_deg: Optional[float]
    speed_kn: Optional[float]


@_sentence("VHW", 8)
def parse_vhw(fields):
    """Water speed and heading; knots, or else the km/h."""
    return ThroughWater(
        heading_true_deg=_number(fields[0]),
        heading_magnetic_deg=_number(fields[2]),
        speed_kn=_number(fields[4]) if fields[4] else _speed_kn(fields[6], "K"),
    )


class Log(NamedTuple):
    """VLW: miles through the water."""

    total_nm: Optional[float]
    trip_nm: Optional[float]


@_sentence("VLW", 4)
def parse_vlw(fields):
    """Distance travelled, in all and since the reset."""
    return Log(total_nm=_number(fields[0]), trip_nm=_number(fields[2]))


class Heading(NamedTuple):
    """HDT, HDM, HDG: where the bow points."""

    heading_deg: Optional[float]
    reference: str
    deviation_deg: Optional[float] = None
    variation_deg: Optional[float] = None


@_sentence("HDT", 2)
def parse_hdt(fields):
    """True heading."""
    return Heading(_number(fields[0]), "true")


@_sentence("HDM", 2)
def parse_hdm(fields):
    """Magnetic heading."""
    return Heading(_number(fields[0]), "magnetic")


@_sentence("HDG", 5)
def parse_hdg(fields):
    """Heading as the sensor has it, with what has to be added to it."""
    return Heading(
        heading_deg=_number(fields[0]),
        reference="sensor",
        deviation_deg=_signed(fields[1], fields[2], "W"),
        variation_deg=_signed(fields[3], fields[4], "W"),
    )


class Turn(NamedTuple):
    """ROT: how fast the bow turns; to port is negative."""

    rate_deg_per_min: Optional[float]
    valid: bool


@_sentence("ROT", 2)
def parse_rot(fields):
    """Rate of turn."""
    return Turn(rate_deg_per_min=_number(fields[0]), valid=_valid(fields[1]))


class Depth(NamedTuple):
    """DBT, DBS, DBK, DPT: of the water, and measured from where."""

    depth_m: Optional[float]
    below: str


def _depth_m(fields):
    """Metres, or else the feet, or else the fathoms, of a sentence that has room for all three."""
    if fields[2]:
        return float(fields[2])
    if fields[0]:
        return _scaled(fields[0], METRES_PER_FOOT)
    return _scaled(fields[4], METRES_PER_FATHOM)


@_sentence("DBT", 6)
def parse_dbt(fields):
    """Depth below transducer."""
    return Depth(_depth_m(fields), "transducer")


@_sentence("DBS", 6)
def parse_dbs(fields):
    """Depth below surface."""
    return Depth(_depth_m(fields), "surface")


@_sentence("DBK", 6)
def parse_dbk(fields):
    """Depth below keel."""
    return Depth(_depth_m(fields), "keel")


@_sentence("DPT", 2)
def parse_dpt(fields):
    """Depth below transducer with an offset: to the surface if positive, to the keel if negative."""
    depth, offset = _number(fields[0]), _number(fields[1])
    if depth is None or not offset:
        return Depth(depth, "transducer")
    return Depth(depth + offset, "surface" if offset > 0 else "keel")


class Temperature(NamedTuple):
    """MTW: of the water."""

    celsius: Optional[float]


@_sentence("MTW", 2)
def parse_mtw(fields):
    """Water temperature."""
    return Temperature(_number(fields[0]))


class Wind(NamedTuple):
    """MWV, VWR, VWT: seen from the bow, 0 to 360 degrees clockwise."""

    angle_deg: Optional[float]
    speed_kn: Optional[float]
    true: bool
    valid: bool


def _from_bow(text, side):
    """An angle that is counted to both sides, counted clockwise."""
    if not text:
        return None
    return (360 - float(text)) % 360 if side == "L" else float(text)


@_sentence("MWV", 5)
def parse_mwv(fields):
    """Wind speed and angle."""
    return Wind(
        angle_deg=_number(fields[0]),
        speed_kn=_speed_kn(fields[2], fields[3]),
        true=fields[1] == "T",
        valid=_valid(fields[4]),
    )


@_sentence("VWR", 8)
def parse_vwr(fields):
    """Relative wind, with the angle counted to both sides."""
    return Wind(
        angle_deg=_from_bow(fields[0], fields[1]),
        speed_kn=_number(fields[2]) if fields[2] else _speed_kn(fields[4], "M"),
        true=False,
        valid=bool(fields[0]),
    )


@_sentence("VWT", 8)
def parse_vwt(fields):
    """True wind, with the angle counted to both sides."""
    return Wind(
        angle_deg=_from_bow(fields[0], fields[1]),
        speed_kn=_number(fields[2]) if fields[2] else _speed_kn(fields[4], "M"),
        true=True,
        valid=bool(fields[0]),
    )


class WindDirection(NamedTuple):
    """MWD: over ground, where it comes from."""

    from_true_deg: Optional[float]
    from_magnetic_deg: Optional[float]
    speed_kn: Optional[float]


@_sentence("MWD", 8)
def parse_mwd(fields):
    """Wind direction and speed; knots, or else the m/s."""
    return WindDirection(
        from_true_deg=_number(fields[0]),
        from_magnetic_deg=_number(fields[2]),
        speed_kn=_number(fields[4]) if fields[4] else _speed_kn(fields[6], "M"),
    )


# Waypoints


class Waypoint(NamedTuple):
    """WPL: a named place."""

    name: str
    latitude: Optional[float]
    longitude: Optional[float]


@_sentence("WPL", 5)
def parse_wpl(fields):
    """Waypoint location."""
    return Waypoint(
        name=fields[4],
        latitude=_latitude(fields[0], fields[1]),
        longitude=_longitude(fields[2], fields[3]),
    )


class Bearing(NamedTuple):
    """BEC, BWC, BWR: in which direction a waypoint lies, and how far off."""

    time: Optional[str]
    latitude: Optional[float]
    longitude: Optional[float]
    bearing_true_deg: Optional[float]
    bearing_magnetic_deg: Optional[float]
    distance_nm: Optional[float]
    waypoint: Optional[str]


@_sentence("BEC", 12)
def parse_bec(fields):
    """Bearing and distance to a waypoint, by dead reckoning."""
    return Bearing(
        time=_text(fields[0]),
        latitude=_latitude(fields[1], fields[2]),
        longitude=_longitude(fields[3], fields[4]),
        bearing_true_deg=_number(fields[5]),
        bearing_magnetic_deg=_number(fields[7]),
        distance_nm=_number(fields[9]),
        waypoint=_text(fields[11]),
    )


@_sentence("BWC", 12)
def parse_bwc(fields):
    """Bearing and distance to a waypoint along the great circle."""
    return Bearing(
        time=_text(fields[0]),
        latitude=_latitude(fields[1], fields[2]),
        longitude=_longitude(fields[3], fields[4]),
        bearing_true_deg=_number(fields[5]),
        bearing_magnetic_deg=_number(fields[7]),
        distance_nm=_number(fields[9]),
        waypoint=_text(fields[11]),
    )


@_sentence("BWR", 12)
def parse_bwr(fields):
    """Bearing and distance to a waypoint along the rhumb line."""
    return Bearing(
        time=_text(fields[0]),
        latitude=_latitude(fields[1], fields[2]),
        longitude=_longitude(fields[3], fields[4]),
        bearing_true_deg=_number(fields[7]),
        bearing_magnetic_deg=_number(fields[5]),
        distance_nm=_number(fields[9]),
        waypoint=_text(fields[11]),
    )


class Leg(NamedTuple):
    """BOD: the direction from one waypoint to the next, at any place on the way."""

    bearing_true_deg: Optional[float]
    bearing_magnetic_deg: Optional[float]
    destination: Optional[str]
    origin: Optional[str]


@_sentence("BOD", 6)
def parse_bod(fields):
    """Bearing from origin to destination."""
    return Leg(
        bearing_true_deg=_number(fields[0]),
        bearing_magnetic_deg=_number(fields[2]),
        destination=_text(fields[4]),
        origin=_text(fields[5]),
    )


class CrossTrack(NamedTuple):
    """XTE: how far beside the track; negative if one has to steer to the left."""

    error_nm: Optional[float]
    valid: bool


@_sentence("XTE", 5)
def parse_xte(fields):
    """Cross-track error; both status fields have to be good."""
    return CrossTrack(
        error_nm=_signed(fields[2], fields[3], "L"),
        valid=_valid(fields[0]) and _valid(fields[1]),
    )


class Destination(NamedTuple):
    """RMB: on the way to a waypoint."""

    valid: bool
    error_nm: Optional[float]
    origin: Optional[str]
    destination: Optional[str]
    latitude: Optional[float]
    longitude: Optional[float]
    distance_nm: Optional[float]
    bearing_true_deg: Optional[float]
    closing_kn: Optional[float]
    arrived: bool


@_sentence("RMB", 13)
def parse_rmb(fields):
    """Recommended minimum while a destination is set."""
    return Destination(
        valid=_valid(fields[0]),
        error_nm=_signed(fields[1], fields[2], "L"),
        origin=_text(fields[3]),
        destination=_text(fields[4]),
        latitude=_latitude(fields[5], fields[6]),
        longitude=_longitude(fields[7], fields[8]),
        distance_nm=_number(fields[9]),
        bearing_true_deg=_number(fields[10]),
        closing_kn=_number(fields[11]),
        arrived=_valid(fields[12]),
    )


# Transducers and messages


class Measurement(NamedTuple):
    """One value of an XDR sentence."""

    kind: str
    value: Optional[float]
    unit: Optional[str]
    name: Optional[str]


@_sentence("XDR", 4)
def parse_xdr(fields):
    """Transducer measurements, four fields each."""
    found = []
    for start in range(0, len(fields) - 3, 4):
        kind, value, unit, name = fields[start : start + 4]
        found.append(Measurement(TRANSDUCERS.get(kind, "unknown"), _number(value), _text(unit), _text(name)))
    return tuple(found)


class Message(NamedTuple):
    """TXT: one part of a text."""

    n_parts: int
    part: int
    number: Optional[int]
    text: str


@_sentence("TXT", 4)
def parse_txt(fields):
    """Text; characters that mean something in a sentence come as ^ and two hexadecimal digits."""
    first, *others = ",".join(fields[3:]).split("^")
    decoded = first + "".join(chr(int(part[:2], 16)) + part[2:] for part in others)
    return Message(int(fields[0]), int(fields[1]), _whole(fields[2]), decoded)


# Lines


def checksum(body):
    """Two hexadecimal digits for what stands between `$` and `*`."""
    return f"{reduce(xor, body.encode('ascii'), 0):02X}"


def framed(body):
    """A body as it goes over the wire, without the line ending."""
    return f"${body}*{checksum(body)}"


def kinds():
    """The kinds of sentences that are read here, sorted."""
    return sorted(_PARSERS)


def talker(line):
    """Who sent a sentence, in words; the two letters if they are not known."""
    letters = line[1:3]
    return TALKERS.get(letters, letters)


def body_of(line):
    """What stands between `$` and `*`.

    Raises NmeaError if the line is no sentence or its checksum is wrong. A sentence may come without checksum.
    """
    line = line.strip()
    if not line.startswith("$") or not line.isascii():
        raise NmeaError(f"not a sentence: {line!r}")
    body, star, given = line[1:].partition("*")
    if star and given.upper() != checksum(body):
        raise NmeaError(f"the checksum is {checksum(body)}, not {given}: {line!r}")
    return body


def read(line):
    """A sentence as the tuple of its kind.

    Raises NmeaError if it is damaged, too short, of an unknown kind, or holds what is no number where one belongs.
    """
    address, *fields = body_of(line).split(",")
    kind = address[2:]
    if kind not in _PARSERS:
        raise NmeaError(f"sentences of kind {kind!r} are not read")
    n_fields, parser = _PARSERS[kind]
    if len(fields) < n_fields:
        raise NmeaError(f"{kind} needs {n_fields} fields, here are {len(fields)}")
    try:
        return parser(fields)
    except NmeaError:
        raise
    except ValueError as error:
        raise NmeaError(f"{kind}: {error}") from None


def read_all(lines):
    """All sentences that can be read, and how many lines could not."""
    found, n_bad = [], 0
    for line in lines:
        try:
            found.append(read(line))
        except NmeaError:
            n_bad += 1
    return found, n_bad
