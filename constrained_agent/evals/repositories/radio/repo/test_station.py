import datetime
import pathlib
import tomllib
import unittest

PATH = pathlib.Path(__file__).resolve().parent / "station.toml"


class Station(unittest.TestCase):
    def setUp(self):
        self.text = PATH.read_text(encoding="utf-8")
        self.station = tomllib.loads(self.text)

    def test_the_station(self):
        self.assertEqual(self.station["name"], "Radio Levada")
        self.assertEqual(self.station["frequency_mhz"], 92.4)
        self.assertEqual(self.station.get("timezone"), "Atlantic/Madeira")
        self.assertEqual(self.station.get("language"), "pt")

    def test_the_stream(self):
        self.assertEqual(list(self.station["stream"]), ["url", "bitrate_kbps", "fallback", "archive"])
        self.assertEqual(self.station["stream"]["fallback"], "loops/sea.ogg")
        self.assertEqual(self.station["stream"]["archive"], {"keep_days": 30, "folder": "archive"})

    def test_the_shows(self):
        rows = [(show["title"], show["weekday"], show["start"].hour, show["minutes"]) for show in self.station["show"]]
        self.assertEqual(
            rows,
            [
                ("Morning swell", "mon", 7, 120),
                ("Harbour talk", "tue", 18, 60),
                ("Late tide", "tue", 22, 120),
                ("Harbour talk", "thu", 18, 60),
                ("Late tide", "thu", 22, 90),
                ("Sunday strings", "sun", 10, 90),
            ],
        )
        self.assertEqual([show["host"] for show in self.station["show"]].count("Inês"), 3)
        self.assertEqual(self.station["show"][5]["start"], datetime.time(10))

    def test_tables_stay_apart(self):
        lines = self.text.splitlines()
        for number, line in enumerate(lines):
            if line.startswith("["):
                self.assertEqual(lines[number - 1], "", f"a blank line before line {number + 1}, {line}")


if __name__ == "__main__":
    unittest.main()
