import pathlib
import unittest
from decimal import Decimal

from till import Till, to_coins


class Coins(unittest.TestCase):
    def check(self, amount, currency, expected):
        with self.subTest(amount=amount, currency=currency):
            self.assertEqual(to_coins(amount, currency), Decimal(expected))

    def test_halfway_goes_away_from_zero(self):
        self.check("0.5", "SEK", "1")
        self.check("2.5", "SEK", "3")
        self.check("0.025", "EUR", "0.05")
        self.check("10.125", "CHF", "10.15")
        self.check("-2.5", "NOK", "-3")

    def test_the_nearest_otherwise(self):
        self.check("2.49", "SEK", "2")
        self.check("2.51", "SEK", "3")
        self.check("0.02", "EUR", "0.00")
        self.check("0.03", "EUR", "0.05")
        self.check("-0.03", "EUR", "-0.05")
        self.check("7", "NOK", "7")


class Drawer(unittest.TestCase):
    def test_a_refund_takes_back_the_payment(self):
        till = Till("SEK", "100")
        self.assertEqual(till.pay("12.50"), Decimal(13))
        self.assertEqual(till.difference, Decimal("0.5"))
        self.assertEqual(till.pay("-12.50"), Decimal(-13))
        self.assertEqual(till.content, Decimal(100))
        self.assertEqual(till.difference, 0)


class File(unittest.TestCase):
    def test_the_mark_at_the_beginning_stays(self):
        content = (pathlib.Path(__file__).parent / "till.py").read_bytes()
        self.assertTrue(content.startswith(b"\xef\xbb\xbf"))


if __name__ == "__main__":
    unittest.main()
