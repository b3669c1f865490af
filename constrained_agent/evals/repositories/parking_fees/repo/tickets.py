"""The tickets of one car park."""

from dataclasses import dataclass, field

from fees import parking_cents

FREE_MINUTES = 10


@dataclass
class Ticket:
    """One car: when it came in, in minutes since the car park opened."""

    plate: str
    entered: int
    charging: bool = False


@dataclass
class CarPark:
    """The cars that are inside, and what was earned."""

    zone: str
    inside: dict = field(default_factory=dict)
    earned_cents: int = 0

    def enter(self, ticket):
        """Let a car in."""
        if ticket.plate in self.inside:
            raise ValueError(f"{ticket.plate} is inside already")
        self.inside[ticket.plate] = ticket

    def fee_cents(self, plate, now):
        """What a car would pay if it left now; nothing for a short stop."""
        ticket = self.inside[plate]
        minutes = now - ticket.entered
        if minutes <= FREE_MINUTES:
            return 0
        return parking_cents(minutes / 60, self.zone)

    def leave(self, plate, now):
        """Let a car out and return what it paid."""
        paid = self.fee_cents(plate, now)
        del self.inside[plate]
        self.earned_cents += paid
        return paid
