"""Recipes that can be scaled and shopped for."""

from dataclasses import dataclass, field

import units


@dataclass
class Ingredient:
    """So much of something, e.g. 2 tbsp of oil."""

    name: str
    amount: float
    unit: str


@dataclass
class Recipe:
    """What goes into a dish for a number of people."""

    title: str
    people: int
    ingredients: list = field(default_factory=list)

    def scaled(self, people):
        """The same dish for another number of people."""
        factor = people / self.people
        scaled = [Ingredient(each.name, each.amount * factor, each.unit) for each in self.ingredients]
        return Recipe(self.title, people, scaled)


def shopping_list(recipes, unit_of):
    """What all recipes need together.

    unit_of: the unit in which each ingredient is sold, by name.
    Raises ValueError, as units.convert does, if a recipe measures it in a unit that does not fit.
    """
    needed = {}
    for recipe in recipes:
        for each in recipe.ingredients:
            amount = units.convert(each.amount, each.unit, unit_of[each.name])
            needed[each.name] = needed.get(each.name, 0) + amount
    return needed
