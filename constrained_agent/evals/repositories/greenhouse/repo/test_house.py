import json
import pathlib
import unittest

PATH = pathlib.Path(__file__).resolve().parent / "house.json"
NIGHT = {
    "entrance": 12, "citrus": 10, "palms": 16, "succulents": 10, "orchids": 18,
    "ferns": 14, "propagation": 19, "vines": 14, "aquatic": 20, "alpine": 4,
}  # fmt: skip
BENCHES = {"entrance": 2, "propagation": 12}


def expected(number, name):
    young = name == "propagation"
    return {
        "name": name,
        "bench_count": BENCHES.get(name, 6),
        "climate": {
            "day": {"min_celsius": 18, "max_celsius": 26},
            "night": {"min_celsius": NIGHT[name], "max_celsius": 22},
            "humidity_percent": 85 if young else 60,
        },
        "irrigation": {
            "valve": f"V{number:02d}",
            "starts": ["06:30", "12:00", "18:00"] if young else ["06:30", "18:00"],
            "seconds": 90,
            "skip_when_raining": False,
        },
        "alarms": {"after_minutes": 20, "notify": ["gardener"]},
    }


class House(unittest.TestCase):
    def setUp(self):
        self.text = PATH.read_text(encoding="utf-8")
        self.house = json.loads(self.text)

    def test_zones(self):
        self.assertEqual([zone["name"] for zone in self.house["zones"]], list(NIGHT))
        for number, zone in enumerate(self.house["zones"], start=1):
            with self.subTest(zone["name"]):
                self.assertEqual(zone, expected(number, zone["name"]))

    def test_the_rest(self):
        self.assertEqual(list(self.house), ["site", "poll_seconds", "zones", "fallback"])
        self.assertEqual(self.house["fallback"], {"vents": "open", "heating": "off"})

    def test_the_layout_is_kept(self):
        self.assertEqual(self.text, json.dumps(self.house, indent=2) + "\n")


if __name__ == "__main__":
    unittest.main()
