import unittest

from chords import chord, drop, invert, transpose


class Inversions(unittest.TestCase):
    def test_triads(self):
        self.assertEqual(invert(chord(60)), [64, 67, 72])
        self.assertEqual(invert(chord(60), 2), [67, 72, 76])
        self.assertEqual(invert(chord(60), 3), [72, 76, 79])

    def test_chords_wider_than_an_octave(self):
        self.assertEqual(invert(chord(60, "add9")), [64, 67, 74, 84])
        self.assertEqual(invert(chord(60, "9"), 2), [67, 70, 74, 84, 88])
        self.assertEqual(invert([36, 60, 76]), [60, 76, 84])

    def test_above_is_not_beside(self):
        self.assertEqual(invert([60, 67, 72]), [67, 72, 84])

    def test_the_order_of_the_notes_does_not_matter(self):
        self.assertEqual(invert([74, 60, 67, 64]), [64, 67, 74, 84])

    def test_nothing_to_lift(self):
        self.assertEqual(invert([60], 3), [60])
        self.assertEqual(invert(chord(60), 0), [60, 64, 67])

    def test_the_notes_given_are_left_alone(self):
        notes = chord(60)
        invert(notes)
        self.assertEqual(notes, [60, 64, 67])


class Others(unittest.TestCase):
    def test_drop(self):
        self.assertEqual(drop(chord(60, "maj7"), 2), [55, 60, 64, 71])
        self.assertEqual(drop([60], 1), [60])
        with self.assertRaises(ValueError):
            drop(chord(60), 4)

    def test_transpose(self):
        self.assertEqual(transpose(chord(60, "m"), -2), [58, 61, 65])
        with self.assertRaises(ValueError):
            transpose([120], 8)


if __name__ == "__main__":
    unittest.main()
