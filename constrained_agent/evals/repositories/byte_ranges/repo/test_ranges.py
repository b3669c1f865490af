import random
import unittest

import ranges
from ranges import RangeError, RangeSet


def members(held):
    return {offset for start, end in held for offset in range(start, end)}


def random_set(source):
    made = RangeSet()
    for _ in range(source.randrange(6)):
        start = source.randrange(40)
        made.add(start, start + source.randrange(9))
    return made


class Sets(unittest.TestCase):
    def test_changing(self):
        held = RangeSet([(10, 20), (30, 40), (20, 25)])
        self.assertEqual(list(held), [(10, 25), (30, 40)])
        held.discard(12, 32)
        self.assertEqual(list(held), [(10, 12), (32, 40)])
        self.assertEqual(held.size, 10)
        with self.assertRaises(RangeError):
            held.add(5, 4)

    def test_asking(self):
        held = RangeSet([(10, 20), (30, 40)])
        self.assertEqual([offset in held for offset in (9, 10, 19, 20, 30)], [False, True, True, False, True])
        self.assertTrue(held.covers(10, 20))
        self.assertFalse(held.covers(15, 35))
        self.assertEqual([held.first_missing(at) for at in (0, 10, 35)], [0, 20, 40])

    def test_intersection(self):
        held = RangeSet([(0, 100)])
        self.assertEqual(list(held.intersection(RangeSet([(10, 20), (30, 40)]))), [(10, 20), (30, 40)])
        self.assertEqual(list(RangeSet([(10, 20), (30, 40)]).intersection(held)), [(10, 20), (30, 40)])
        self.assertEqual(list(RangeSet([(0, 5)]).intersection(RangeSet([(5, 9)]))), [])
        self.assertEqual(list(held.intersection(RangeSet())), [])
        self.assertEqual(list(held.intersection(held)), [(0, 100)])

    def test_against_sets_of_numbers(self):
        source = random.Random(7)
        for _ in range(300):
            left, right = random_set(source), random_set(source)
            self.assertEqual(members(left.union(right)), members(left) | members(right))
            self.assertEqual(members(left.intersection(right)), members(left) & members(right))
            self.assertEqual(members(left.difference(right)), members(left) - members(right))

    def test_missing(self):
        self.assertEqual(list(RangeSet([(10, 20)]).missing(30)), [(0, 10), (20, 30)])
        self.assertEqual(list(RangeSet([(10, 20)]).shifted(5)), [(15, 25)])


class Requests(unittest.TestCase):
    def test_pieces(self):
        self.assertEqual(ranges.pieces(RangeSet([(0, 25), (40, 42)]), 10), [(0, 10), (10, 20), (20, 25), (40, 42)])

    def test_bridged(self):
        self.assertEqual(list(ranges.bridged(RangeSet([(0, 5), (8, 10), (20, 21)]), 3)), [(0, 10), (20, 21)])

    def test_headers(self):
        held = RangeSet([(0, 100), (200, 300)])
        self.assertEqual(ranges.range_header(held), "bytes=0-99,200-299")
        self.assertEqual(ranges.read_range_header("bytes=0-99,200-299", 1000), held)
        self.assertEqual(list(ranges.read_range_header("bytes=-5, 90-", 100)), [(90, 100)])
        self.assertEqual(ranges.read_content_range("bytes 0-99/*"), ((0, 100), None))
        for text in ("bytes", "bytes=", "bytes=-", "lines=1-2", "bytes=a-b"):
            with self.subTest(text), self.assertRaises(RangeError):
                ranges.read_range_header(text, 10)


class Notes(unittest.TestCase):
    def test_there_and_back(self):
        held = RangeSet([(0, 100), (200, 300)])
        self.assertEqual(ranges.loads(ranges.dumps(held)), held)
        self.assertEqual(ranges.progress(held, 300), "66 % (2 parts)")
        self.assertEqual(ranges.progress(RangeSet(), 0), "100 % (0 parts)")


if __name__ == "__main__":
    unittest.main()
