from decimal import ROUND_HALF_EVEN, Decimal

# The smallest coin of each currency; cards are charged to the cent.
COINS = {
    "CHF": Decimal("0.05"),
    "EUR": Decimal("0.05"),
    "SEK": Decimal("1"),
    "NOK": Decimal("1"),
}


def to_coins(amount, currency):
    """An amount as it is paid in cash: to the nearest multiple of the smallest coin.

    What lies halfway goes away from zero, so that a refund is as large as the payment was.
    """
    coin = COINS[currency]
    count = (Decimal(amount) / coin).quantize(Decimal(1), rounding=ROUND_HALF_EVEN)
    return count * coin


class Till:
    """What lies in one drawer."""

    def __init__(self, currency, float_amount="0"):
        self.currency = currency
        self.content = Decimal(float_amount)
        self.difference = Decimal(0)  # what rounding took (or gave, then negative) so far

    def pay(self, amount):
        """Take a payment (or give a refund, if negative) and return what changes hands."""
        exact = Decimal(amount)
        paid = to_coins(exact, self.currency)
        self.content += paid
        self.difference += paid - exact
        return paid
