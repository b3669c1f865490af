import unittest

from calculator import CalculatorError, answer, calculate


class Calculate(unittest.TestCase):
    def test_values(self):
        self.assertEqual(calculate("3 4 + 2 *"), 14)
        self.assertEqual(calculate("10 4 -"), 6)
        self.assertEqual(calculate("1 2 /"), 0.5)
        self.assertEqual(calculate("-7"), -7)

    def test_too_few_values(self):
        for text in ("+", "1 +", "1 2 + *", "- 1 2"):
            with self.subTest(text), self.assertRaises(CalculatorError):
                calculate(text)

    def test_the_message_names_the_operator(self):
        for text, word in (("1 +", "+"), ("1 2 - *", "*"), ("/", "/")):
            with self.subTest(text), self.assertRaises(CalculatorError) as caught:
                calculate(text)
            self.assertIn(word, str(caught.exception))

    def test_exactly_two_values_are_enough(self):
        self.assertEqual(calculate("1 2 + 3 +"), 6)

    def test_other_errors(self):
        self.assertEqual(answer("1 0 /"), "error: division by zero")
        self.assertEqual(answer("1 two +"), "error: 'two' is no number and no operator")
        self.assertEqual(answer("1 2"), "error: 2 values are left, not one")
        self.assertEqual(answer(""), "error: 0 values are left, not one")

    def test_answer(self):
        self.assertEqual(answer("6 2 /"), "3")
        self.assertTrue(answer("+").startswith("error: "))


if __name__ == "__main__":
    unittest.main()
