import pathlib
import unittest

from contacts import FORMATS, export, exports

PEOPLE = [{"name": "Ada, Countess", "mail": "ada@example.org"}, {"name": "Bo", "phone": "12 34"}]
PACKAGE = pathlib.Path(exports.__file__).parent


class Exports(unittest.TestCase):
    def test_formats(self):
        self.assertEqual(list(FORMATS), ["csv", "vcard"])
        self.assertEqual(list(exports.SUFFIXES), ["csv", "vcard"])

    def test_the_old_format_is_refused(self):
        with self.assertRaises(ValueError) as caught:
            export(PEOPLE, "ldif")
        self.assertEqual(str(caught.exception), "no format 'ldif'; there are: csv, vcard")

    def test_its_module_is_gone(self):
        found = sorted(path.name for path in PACKAGE.glob("*.py"))
        self.assertEqual(found, ["__init__.py", "csv_export.py", "exports.py", "vcard_export.py"])

    def test_csv(self):
        self.assertEqual(
            export(PEOPLE, "csv"), 'name,mail,phone\n"Ada, Countess",ada@example.org,\nBo,,12 34\n'
        )

    def test_vcard(self):
        cards = export(PEOPLE, "vcard").split("\r\n")
        self.assertEqual(cards[2:4], ["FN:Ada\\, Countess", "EMAIL:ada@example.org"])
        self.assertEqual(cards.count("END:VCARD"), 2)

    def test_file_names(self):
        self.assertEqual(exports.file_name("My Friends", "vcard"), "my-friends.vcf")


if __name__ == "__main__":
    unittest.main()
