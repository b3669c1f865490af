"""Check digits of book numbers (ISBN-10 and ISBN-13)."""

PREFIX = "978"


class BadNumber(ValueError):
    """Not an ISBN: wrong length, wrong characters or wrong check digit."""


def compact(text):
    """The number without blanks and hyphens; a final x as a capital."""
    return text.replace("-", "").replace(" ", "").upper()


def check_digit_10(digits):
    """The last character of an ISBN-10, from the nine digits before it.

    Weights run from 10 down to 2; the check digit makes the sum divisible by 11.
    A check digit of ten is written X.
    """
    total = sum(weight * int(digit) for weight, digit in zip(range(10, 1, -1), digits))
    return str(11 - total % 11)


def check_digit_13(digits):
    """The last character of an ISBN-13, from the twelve digits before it."""
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits))
    return str(-total % 10)


def parse(text):
    """The compact number, if it is a right one.

    Raises BadNumber otherwise.
    """
    number = compact(text)
    body, last = number[:-1], number[-1:]
    if len(number) not in (10, 13) or not body.isdecimal():
        raise BadNumber(f"not an ISBN: {text!r}")
    expected = check_digit_10(body) if len(number) == 10 else check_digit_13(body)
    if last != expected:
        raise BadNumber(f"{text!r} ends in {last}, its check digit is {expected}")
    return number


def to_isbn13(text):
    """Any ISBN as an ISBN-13."""
    number = parse(text)
    if len(number) == 13:
        return number
    body = PREFIX + number[:-1]
    return body + check_digit_13(body)
