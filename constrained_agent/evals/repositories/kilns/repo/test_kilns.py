import configparser
import pathlib
import unittest

PATH = pathlib.Path(__file__).resolve().parent / "kilns.ini"
PROGRAMS = {
    "small bisque": ("small", 100, 950, 15, "free"),
    "small stoneware": ("small", 150, 1240, 20, "free"),
    "small crystal": ("small", 150, 1260, 5, "60"),
    "middle bisque": ("middle", 80, 950, 20, "free"),
    "middle stoneware": ("middle", 120, 1240, 20, "free"),
    "large bisque": ("large", 60, 950, 30, "free"),
    "large stoneware": ("large", 90, 1240, 45, "free"),
    "raku": ("outdoors", 300, 980, 0, "water"),
}


class Kilns(unittest.TestCase):
    def setUp(self):
        self.bytes = PATH.read_bytes()
        self.programs = configparser.ConfigParser()
        self.programs.read_string(self.bytes.decode("utf-8-sig"))

    def test_the_programs(self):
        self.assertEqual(self.programs.sections(), list(PROGRAMS))
        for name, (kiln, ramp, top, hold, cooling) in PROGRAMS.items():
            with self.subTest(name):
                found = dict(self.programs[name])
                expected = {"kiln": kiln, "ramp": str(ramp), "top": str(top), "hold": str(hold), "cooling": cooling}
                self.assertEqual(found, expected)

    def test_the_controllers_can_read_it(self):
        self.assertTrue(self.bytes.startswith(b"\xef\xbb\xbf; Firing programs"))
        lines = self.bytes.split(b"\n")
        self.assertEqual(lines.pop(), b"")
        self.assertEqual([number for number, line in enumerate(lines, 1) if not line.endswith(b"\r")], [])


if __name__ == "__main__":
    unittest.main()
