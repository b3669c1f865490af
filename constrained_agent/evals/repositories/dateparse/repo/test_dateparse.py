import datetime
import unittest

from dateparse import parse_date

NINTH_OF_MARCH = datetime.date(2024, 3, 9)


class DateParse(unittest.TestCase):
    def test_parse_iso(self):
        self.assertEqual(parse_date("2024-03-09"), NINTH_OF_MARCH)

    def test_parse_date(self):
        self.assertEqual(parse_date("09/03/2024"), NINTH_OF_MARCH, "DD/MM/YYYY")
        self.assertEqual(parse_date("9 March 2024"), NINTH_OF_MARCH, "day, month name, year")


if __name__ == "__main__":
    unittest.main()
