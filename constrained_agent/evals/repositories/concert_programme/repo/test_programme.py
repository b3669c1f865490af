import unittest

import programme


class Lines(unittest.TestCase):
    def test_plain_title(self):
        self.assertEqual(programme.quoted("Nocturne"), "\u201cNocturne\u201d")
        self.assertEqual(
            programme.line("Nocturne", "Inga S\u00f6derstr\u00f6m", 1890, 1891),
            "\u201cNocturne\u201d, 1890\u20131891 \u2014 Inga S\u00f6derstr\u00f6m",
        )

    def test_marks_inside_a_title(self):
        self.assertEqual(
            programme.quoted("The \u201cSwift\u201d at Sea"), "\u201cThe \u2018Swift\u2019 at Sea\u201d"
        )
        self.assertEqual(
            programme.quoted("\u201cNow\u201d and \u201cThen\u201d"),
            "\u201c\u2018Now\u2019 and \u2018Then\u2019\u201d",
        )

    def test_an_apostrophe_stays(self):
        self.assertEqual(programme.quoted("The Miller\u2019s Dog"), "\u201cThe Miller\u2019s Dog\u201d")

    def test_years(self):
        self.assertEqual(programme.years(1890), "1890")
        self.assertEqual(programme.years(1890, 1890), "1890")
        self.assertEqual(programme.years(1890, 1895), "1890\u20131895")

    def test_long_titles(self):
        title = "Sketches of a harbour in the early morning, for seven boats \u2014 and a dog"
        self.assertEqual(
            programme.shortened(title), "Sketches of a harbour in the early morning, for seven\u2026"
        )
        self.assertEqual(
            programme.shortened("Sketches of a harbour in the early morning, for some \u2014 andante"),
            "Sketches of a harbour in the early morning, for some\u2026",
        )
        self.assertEqual(programme.shortened("x" * 60), "x" * 60)


if __name__ == "__main__":
    unittest.main()
