import unittest

import colours


def hsl(code):
    return colours.to_hsl(*colours.from_hex(code))


class Colours(unittest.TestCase):
    def test_from_code_to_hue(self):
        self.assertEqual(colours.from_hex("#f08"), (255, 0, 136), "the short form doubles each digit")
        self.assertEqual(colours.from_hex("fff"), (255, 255, 255))
        self.assertEqual(hsl("#f08"), (328, 100, 50), "a hue is never negative")
        self.assertEqual(hsl("#ff0001"), (0, 100, 50), "360 degrees are 0")

    def test_long_form(self):
        self.assertEqual(colours.from_hex("#1E90ff"), (30, 144, 255))
        self.assertEqual(colours.to_hex(30, 144, 255), "#1e90ff")

    def test_hues(self):
        self.assertEqual(hsl("#ff8000"), (30, 100, 50))
        self.assertEqual(hsl("#00ff00"), (120, 100, 50))
        self.assertEqual(hsl("#1e90ff"), (210, 100, 56))
        self.assertEqual(hsl("#808080"), (0, 0, 50))

    def test_refusals(self):
        for code in ("", "#", "#ffff", "#ggg", "##fff"):
            with self.subTest(code), self.assertRaises(ValueError):
                colours.from_hex(code)

    def test_contrast(self):
        self.assertAlmostEqual(colours.contrast((0, 0, 0), (255, 255, 255)), 21)


if __name__ == "__main__":
    unittest.main()
