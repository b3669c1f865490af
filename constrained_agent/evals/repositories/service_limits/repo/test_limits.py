import unittest

import limits

USUAL = {
    "timeout_s": 4.0,
    "attempts": 3,
    "idempotent": True,
    "breaker": {"window_s": 60, "max_failures": 10},
}


class Limits(unittest.TestCase):
    def test_a_payment_is_never_sent_twice(self):
        self.assertEqual(limits.pauses_s("payments"), [])
        self.assertFalse(limits.SERVICES["payments"]["idempotent"])
        self.assertEqual(limits.longest_call_s("payments"), 4.0)

    def test_the_rest_of_payments_is_as_usual(self):
        payments = limits.SERVICES["payments"]
        self.assertEqual(payments["breaker"], USUAL["breaker"])
        self.assertEqual(sorted(payments), sorted(USUAL))

    def test_the_other_services(self):
        self.assertEqual(list(limits.SERVICES), ["catalogue", "payments", "shipping", "reviews"])
        self.assertEqual(limits.SERVICES["catalogue"], USUAL)
        self.assertEqual(limits.SERVICES["shipping"], USUAL)
        self.assertEqual(limits.SERVICES["reviews"]["attempts"], 2)
        self.assertEqual(limits.longest_call_s("catalogue"), 13.5)

    def test_breaker(self):
        self.assertTrue(limits.is_open("payments", [1] * 10))
        self.assertFalse(limits.is_open("payments", [1] * 9 + [61]))


if __name__ == "__main__":
    unittest.main()
