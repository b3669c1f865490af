"""The formats in which an address book can be written."""

from contacts import csv_export, ldif_export, vcard_export

FORMATS = {
    "csv": csv_export.write,
    "ldif": ldif_export.write,
    "vcard": vcard_export.write,
}

SUFFIXES = {
    "csv": ".csv",
    "ldif": ".ldif",
    "vcard": ".vcf",
}


def export(people, name):
    """All people as one text.

    people: dicts with "name" and perhaps "mail" and "phone".
    Raises ValueError if there is no such format.
    """
    if name not in FORMATS:
        raise ValueError(f"no format {name!r}; there are: {', '.join(FORMATS)}")
    return FORMATS[name](people)


def file_name(title, name):
    """What the file is called when it is downloaded."""
    return title.lower().replace(" ", "-") + SUFFIXES[name]
