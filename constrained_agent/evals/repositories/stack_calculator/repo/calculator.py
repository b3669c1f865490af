"""A calculator in reverse Polish notation: `3 4 + 2 *` is (3 + 4) * 2."""

import operator


class CalculatorError(Exception):
    """The input cannot be calculated; the message names the word at fault."""


def divide(left, right):
    """left / right, with a message of our own for zero."""
    if right == 0:
        raise CalculatorError("division by zero")
    return left / right


BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divide,
}


def calculate(text):
    """The value of an expression.

    Raises CalculatorError if a word is neither a number nor an operator, an operator finds fewer than two
    values, or the expression does not end with exactly one value.
    """
    stack = []
    for word in text.split():
        if word in BINARY:
            right = stack.pop()
            left = stack.pop()
            stack.append(BINARY[word](left, right))
            continue
        try:
            stack.append(float(word))
        except ValueError:
            raise CalculatorError(f"{word!r} is no number and no operator") from None
    if len(stack) != 1:
        raise CalculatorError(f"{len(stack)} values are left, not one")
    return stack[0]


def answer(text):
    """What the prompt prints: the value without needless decimals, or the error."""
    try:
        return f"{calculate(text):g}"
    except CalculatorError as error:
        return f"error: {error}"
