"""Checks handbook.md: links within it, tables, and prices. Prints what is wrong; exit code 1 then."""

import pathlib
import re
import sys

TEXT = (pathlib.Path(__file__).resolve().parent / "handbook.md").read_text(encoding="utf-8")
HEADINGS = [
    "Handbook of the climbing hall", "Opening the hall", "Prices", "Lending gear", "Courses and tests", "Accidents",
    "Closing the hall",
]  # fmt: skip
PRICES = {
    "Day": ("14.00", "9.50", "7.00"),
    "Evening": ("10.00", "7.00", "5.00"),
    "Ten visits": ("120.00", "80.00", "60.00"),
    "Month": ("62.00", "41.00", "31.00"),
}
GEAR = ["Shoes", "Harness", "Belay device", "Chalk bag"]
COURSES = ["Toprope", "Lead", "Falling"]


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables():
    """Lists of rows; a row is a list of cells."""
    found, current = [], []
    for line in [*TEXT.splitlines(), ""]:
        if line.startswith("|"):
            current.append(cells(line))
        elif current:
            found.append(current)
            current = []
    return found


def link_problems():
    headings = re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE)
    if headings != HEADINGS:
        yield f"the headings are {headings}, not {HEADINGS}"
    links = re.findall(r"(?<!!)\[([^\]]+)\]\(#([^)]*)\)", TEXT)
    if len(links) != 10:
        yield f"there are {len(links)} links, not 10"
    for text, target in links:
        if target not in {anchor(heading) for heading in headings}:
            yield f"[{text}](#{target}) leads nowhere"
        elif target != anchor(text):
            yield f"[{text}](#{target}) leads to another section"


def table_problems():
    prices, gear, courses = tables()
    for table in (prices, gear, courses):
        for row in table:
            if len(row) != len(table[0]):
                yield f"the row {row} has {len(row)} cells, its table {len(table[0])} columns"
    if {row[0]: tuple(row[1:]) for row in prices[2:]} != PRICES:
        yield f"the prices are not {PRICES}"
    if [row[0] for row in gear[2:]] != GEAR or [row[0] for row in courses[2:]] != COURSES:
        yield "a row of gear or courses is missing or new"


def main():
    problems = [*link_problems(), *table_problems()]
    for problem in problems:
        print(f"handbook.md: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
