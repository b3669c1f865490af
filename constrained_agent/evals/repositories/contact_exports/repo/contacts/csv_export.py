"""One line for each person, for spreadsheets."""

import csv
import io

COLUMNS = ("name", "mail", "phone")


def write(people):
    """A table with a heading; what is not known stays empty."""
    out = io.StringIO()
    table = csv.DictWriter(out, COLUMNS, restval="", extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    table.writerows(people)
    return out.getvalue()
