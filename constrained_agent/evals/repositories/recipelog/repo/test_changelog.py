import datetime
import pathlib
import re
import unittest

TEXT = (pathlib.Path(__file__).resolve().parent / "CHANGELOG.md").read_text(encoding="utf-8")
LINES = TEXT.splitlines()
BELL = "- The timer’s bell rings when the screen is locked."


def releases():
    """Version, date and lines of each release, from the top."""
    parts = re.split(r"^## (\S+) – (\S+)$", TEXT, flags=re.MULTILINE)[1:]
    return list(zip(parts[::3], map(datetime.date.fromisoformat, parts[1::3]), map(str.splitlines, parts[2::3])))


class Changelog(unittest.TestCase):
    def test_the_versions(self):
        versions = [version for version, _, _ in releases()]
        self.assertEqual(versions, ["3.2.0", "3.1.1", "3.1.0", "3.0.0"])
        self.assertEqual(re.findall(r"^\[(.+)\]: releases/\1\.html$", TEXT, re.MULTILINE), versions)

    def test_the_dates(self):
        dates = {version: str(date) for version, date, _ in releases()}
        self.assertEqual(
            dates, {"3.2.0": "2024-11-18", "3.1.1": "2024-09-02", "3.1.0": "2024-08-21", "3.0.0": "2024-06-10"}
        )

    def test_every_quote_is_closed(self):
        for number, line in enumerate(LINES, 1):
            marks = "".join(re.findall("[“”]", line))
            self.assertEqual(marks, "“”" * (len(marks) // 2), f"line {number}: {line}")
            self.assertIsNone(re.search("[\"']", line), f"line {number} has straight quotes: {line}")

    def test_what_is_fixed_where(self):
        fixed = {version: [line for line in lines if line == BELL] for version, _, lines in releases()}
        self.assertEqual(fixed, {"3.2.0": [BELL], "3.1.1": [], "3.1.0": [], "3.0.0": []})

    def test_the_other_entries_are_there(self):
        self.assertEqual([len([l for l in lines if l.startswith("- ")]) for *_, lines in releases()], [5, 1, 4, 3])
        self.assertIn("- Settings → “Units” knows “cups (US)” and “cups (metric)”.", LINES)
        self.assertIn("- “Cook along” didn’t keep the screen awake.", LINES)
        self.assertIn("- Importing a recipe with the title “Crème brûlée” – or any other accent – keeps its letters.", LINES)


if __name__ == "__main__":
    unittest.main()
