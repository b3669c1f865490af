import unittest

import units
from recipe import Ingredient, Recipe, shopping_list

BREAD = Recipe("bread", 4, [Ingredient("flour", 0.5, "kg"), Ingredient("oil", 2, "tbsp")])
SALAD = Recipe("salad", 2, [Ingredient("oil", 3, "tsp"), Ingredient("flour", 20, "g")])


class Convert(unittest.TestCase):
    def test_volume(self):
        self.assertAlmostEqual(units.convert(1, "tbsp", "tsp"), 3)
        self.assertAlmostEqual(units.convert(2, "cup", "ml"), 480)
        self.assertAlmostEqual(units.convert(250, "ml", "l"), 0.25)

    def test_mass(self):
        self.assertAlmostEqual(units.convert(1.5, "kg", "g"), 1500)
        self.assertAlmostEqual(units.convert(56.7, "g", "oz"), 2)

    def test_same_unit(self):
        for unit in ("ml", "l", "tsp", "tbsp", "cup", "g", "kg", "oz"):
            self.assertAlmostEqual(units.convert(7, unit, unit), 7)

    def test_refusals(self):
        for source, target in (("g", "ml"), ("cup", "oz"), ("g", "stone"), ("pinch", "g"), ("pinch", "pinch")):
            with self.subTest(source=source, target=target), self.assertRaises(ValueError):
                units.convert(1, source, target)


class Shopping(unittest.TestCase):
    def test_sum(self):
        needed = shopping_list([BREAD.scaled(8), SALAD], {"flour": "g", "oil": "ml"})
        self.assertEqual(sorted(needed), ["flour", "oil"])
        self.assertAlmostEqual(needed["flour"], 1020)
        self.assertAlmostEqual(needed["oil"], 75)

    def test_a_unit_that_does_not_fit(self):
        with self.assertRaises(ValueError):
            shopping_list([SALAD], {"flour": "g", "oil": "g"})


if __name__ == "__main__":
    unittest.main()
