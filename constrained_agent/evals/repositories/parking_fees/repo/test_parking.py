import unittest

from fees import parking_cents
from tickets import CarPark, Ticket


class Fees(unittest.TestCase):
    def test_minutes(self):
        self.assertEqual(parking_cents(1, "street"), 250)
        self.assertEqual(parking_cents(60, "street"), 250)
        self.assertEqual(parking_cents(61, "street"), 550)
        self.assertEqual(parking_cents(180, "garage"), 480)
        self.assertEqual(parking_cents(1440, "outskirts"), 1000)

    def test_charging_costs_half_as_much_again(self):
        self.assertEqual(parking_cents(60, "garage", charging=True), 270)
        self.assertEqual(parking_cents(90, "garage", charging=True), 495)
        self.assertEqual(parking_cents(90, "garage", charging=False), 330)

    def test_refusals(self):
        for minutes in (0, -1, 1441):
            with self.subTest(minutes), self.assertRaises(ValueError):
                parking_cents(minutes, "street")
        with self.assertRaises(ValueError):
            parking_cents(60, "moon")


class Tickets(unittest.TestCase):
    def test_a_stay(self):
        park = CarPark("street")
        park.enter(Ticket("AB 12", 100))
        self.assertEqual(park.fee_cents("AB 12", 110), 0)
        self.assertEqual(park.fee_cents("AB 12", 111), 250)
        self.assertEqual(park.leave("AB 12", 221), 850)
        self.assertEqual((park.earned_cents, park.inside), (850, {}))

    def test_charging(self):
        park = CarPark("garage")
        park.enter(Ticket("E 1", 0, charging=True))
        park.enter(Ticket("G 1", 0))
        self.assertEqual(park.leave("E 1", 60), 270)
        self.assertEqual(park.leave("G 1", 60), 180)

    def test_a_whole_day(self):
        park = CarPark("outskirts")
        park.enter(Ticket("AB 12", 0))
        self.assertEqual(park.fee_cents("AB 12", 1440), 1000)
        with self.assertRaises(ValueError):
            park.fee_cents("AB 12", 1441)


if __name__ == "__main__":
    unittest.main()
