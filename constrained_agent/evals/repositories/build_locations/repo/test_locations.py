import unittest

from locations import Location, issues, locations


class Locations(unittest.TestCase):
    def test_slashes(self):
        self.assertEqual(locations("src/main.c:12: error"), [Location("src/main.c", 12, None)])
        self.assertEqual(locations("at lib/a-b/c.d.py:3:14,"), [Location("lib/a-b/c.d.py", 3, 14)])
        self.assertEqual(locations("see x.h:7"), [Location("x.h", 7, None)])

    def test_backslashes(self):
        self.assertEqual(locations(r"src\main.c:12: error"), [Location(r"src\main.c", 12, None)])
        self.assertEqual(locations(r"lib\new\tab.c:8:1"), [Location(r"lib\new\tab.c", 8, 1)])

    def test_drives(self):
        self.assertEqual(locations(r"C:\work\main.c:12:5: error"), [Location(r"C:\work\main.c", 12, 5)])
        self.assertEqual(locations("d:/src/main.c:12"), [Location("d:/src/main.c", 12, None)])
        self.assertEqual(locations(r"C:\a/b\c.c:1"), [Location(r"C:\a/b\c.c", 1, None)])

    def test_several_with_colours(self):
        text = "\x1b[1;31ma.c:1\x1b[0m and " + r"b\b.c:2"
        self.assertEqual(locations(text), [Location("a.c", 1, None), Location(r"b\b.c", 2, None)])

    def test_no_place(self):
        self.assertEqual(locations("at 12:30 o'clock, main.c, C:\\work\\main:5"), [])

    def test_no_other_separators(self):
        self.assertEqual(locations("a|b.c:1"), [Location("b.c", 1, None)])


class Issues(unittest.TestCase):
    def test_keys(self):
        self.assertEqual(issues("fix TEAM-12, AB2-7 and TEAM-12"), ["TEAM-12", "AB2-7"])
        self.assertEqual(issues("X-1 team-3 TEAM-03 MY-TEAM-4 TEAM-5x"), [])


if __name__ == "__main__":
    unittest.main()
