import pathlib
import unittest

from site_builder import feed, pages, slugs

PACKAGE = pathlib.Path(slugs.__file__).parent


class Slugs(unittest.TestCase):
    def test_slug(self):
        self.assertEqual(slugs.slug("Crème brûlée, at last!"), "creme-brulee-at-last")
        self.assertEqual(slugs.slug("word " * 20), "-".join(["word"] * 9))
        with self.assertRaises(ValueError):
            slugs.slug("?!")

    def test_distinct(self):
        self.assertEqual(slugs.distinct(["A b", "a B", "c", "A-b"]), ["a-b", "a-b-2", "c", "a-b-3"])

    def test_users(self):
        self.assertEqual(pages.paths(["One", "One"]), ["notes/one/index.html", "notes/one-2/index.html"])
        self.assertIn('<a href="/notes/a-b/">A &amp; B</a>', pages.index(["A & B"]))
        self.assertIn("<id>https://example.org/notes/one/</id>", feed.entry("One", "1 < 2"))


class Layout(unittest.TestCase):
    def test_the_old_module_is_gone(self):
        found = sorted(path.name for path in PACKAGE.glob("*.py"))
        self.assertEqual(found, ["__init__.py", "feed.py", "pages.py", "slugs.py"])

    def test_nobody_speaks_of_it(self):
        for path in PACKAGE.glob("*.py"):
            self.assertNotIn("txt", path.read_text(encoding="utf-8"), path.name)


if __name__ == "__main__":
    unittest.main()
