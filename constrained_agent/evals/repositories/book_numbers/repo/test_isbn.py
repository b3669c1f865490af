import pathlib
import unittest

import isbn


class CheckDigits(unittest.TestCase):
    def test_ten_digits(self):
        self.assertEqual(isbn.check_digit_10("030640615"), "2")
        self.assertEqual(isbn.check_digit_10("316148410"), "X")

    def test_ten_is_written_as_x(self):
        self.assertEqual(isbn.check_digit_10("097522980"), "X")
        self.assertEqual(isbn.parse("0-9752298-0-x"), "097522980X")

    def test_a_sum_that_is_divisible_already(self):
        self.assertEqual(isbn.check_digit_10("000000000"), "0")
        self.assertEqual(isbn.check_digit_10("100000001"), "X")

    def test_all_sums_have_one_character(self):
        found = [isbn.check_digit_10(f"{number:09}") for number in range(0, 500)]
        self.assertEqual({len(digit) for digit in found}, {1})
        self.assertEqual(set(found), set("0123456789X"))

    def test_thirteen_digits(self):
        self.assertEqual(isbn.check_digit_13("978030640615"), "7")
        self.assertEqual(isbn.to_isbn13("0-306-40615-2"), "9780306406157")

    def test_bad_numbers(self):
        for text in ("", "0-306-40615-3", "030640615", "03064X6152", "9780306406158"):
            with self.subTest(text), self.assertRaises(isbn.BadNumber):
                isbn.parse(text)


class File(unittest.TestCase):
    def test_lines_end_as_before(self):
        content = (pathlib.Path(__file__).parent / "isbn.py").read_bytes()
        self.assertEqual(content.count(b"\n"), content.count(b"\r\n"))


if __name__ == "__main__":
    unittest.main()
