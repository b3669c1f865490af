import pathlib
import re
import tomllib
import unittest

PATH = pathlib.Path(__file__).resolve().parent / "catalogue.toml"
PLACES = {
    "CL-0412": "Nürnberg",
    "CL-0733-a": "Besançon",
    "CL-0733-b": "Besançon",
    "CL-1005": "Gdańsk",
    "CL-1187": "Θεσσαλονίκη",
}


class Catalogue(unittest.TestCase):
    def setUp(self):
        self.bytes = PATH.read_bytes()
        self.catalogue = tomllib.loads(self.bytes.decode("utf-8"))

    def test_the_pattern(self):
        pattern = re.compile(self.catalogue["room"]["inventory_pattern"])
        for inventory in (*PLACES, "CL-0000"):
            self.assertRegex(inventory, pattern)
        for wrong in ("CL-41", "CL-0412-d", "XCL-0412", "CL-dddd", "CL-04120"):
            self.assertNotRegex(wrong, pattern)

    def test_the_room(self):
        self.assertEqual(self.catalogue["room"]["title"], "Uhren – Horloges – Zegary")
        self.assertEqual(self.catalogue["room"]["floor"], 2)

    def test_the_objects(self):
        objects = {each["inventory"]: each for each in self.catalogue["object"]}
        self.assertEqual({key: each["place"] for key, each in objects.items()}, PLACES)
        self.assertEqual([each["year"] for each in objects.values()], [1741, 1768, 1768, 1690, 1812])
        self.assertEqual(objects["CL-0733-a"]["material"], ["bronze doré", "émail"])
        self.assertEqual(objects["CL-0733-b"]["material"], ["bronze doré", "marbre blanc"])
        self.assertEqual(objects["CL-0733-b"]["title"], "Socle de la pendule à l’éléphant")
        self.assertEqual(objects["CL-1005"]["maker"], "Łukasz Żądło")

    def test_every_line_ends_as_before(self):
        lines = self.bytes.split(b"\n")
        self.assertEqual(lines.pop(), b"")
        self.assertEqual([number for number, line in enumerate(lines, 1) if not line.endswith(b"\r")], [])


if __name__ == "__main__":
    unittest.main()
