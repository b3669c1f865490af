import unittest

from gauge import Gauge


def gauge(*levels, capacity=288):
    made = Gauge("bridge", capacity)
    for level in levels:
        made.record(level)
    return made


class Figures(unittest.TestCase):
    def setUp(self):
        self.gauge = gauge(100, 180, 120, 150, 140)

    def test_each_over_three(self):
        self.assertAlmostEqual(self.gauge.mean(3), 410 / 3)
        self.assertEqual(self.gauge.lowest(3), 120)
        self.assertEqual(self.gauge.highest(3), 150)
        self.assertEqual(self.gauge.change(3), 20)
        self.assertEqual(self.gauge.spread(3), 30)

    def test_each_over_one(self):
        for figure in (self.gauge.mean, self.gauge.lowest, self.gauge.highest):
            self.assertEqual(figure(1), 140)
        self.assertEqual(self.gauge.change(1), 0)
        self.assertEqual(self.gauge.spread(1), 0)

    def test_each_over_more_than_there_are(self):
        self.assertEqual(self.gauge.mean(50), 138)
        self.assertEqual(self.gauge.lowest(50), 100)
        self.assertEqual(self.gauge.highest(50), 180)
        self.assertEqual(self.gauge.change(50), 40)
        self.assertEqual(self.gauge.spread(50), 80)

    def test_exactly_all(self):
        self.assertEqual(self.gauge.change(5), 40)
        self.assertEqual(self.gauge.change(4), -40)

    def test_the_oldest_goes(self):
        small = gauge(1, 2, 3, 4, capacity=3)
        self.assertEqual(len(small), 3)
        self.assertEqual(small.lowest(4), 2)

    def test_refusals(self):
        for name in ("mean", "lowest", "highest", "change", "spread"):
            with self.subTest(name):
                with self.assertRaises(ValueError):
                    getattr(self.gauge, name)(0)
                with self.assertRaises(ValueError):
                    getattr(gauge(), name)(1)


if __name__ == "__main__":
    unittest.main()
