"""How the gateway treats each service behind it: time limits, retries, circuit breaker."""

FIRST_PAUSE_S = 0.5

SERVICES = {
    "catalogue": {
        "timeout_s": 4.0,
        "attempts": 3,
        "idempotent": True,
        "breaker": {
            "window_s": 60,
            "max_failures": 10,
        },
    },
    "payments": {
        "timeout_s": 4.0,
        "attempts": 3,
        "idempotent": True,
        "breaker": {
            "window_s": 60,
            "max_failures": 10,
        },
    },
    "shipping": {
        "timeout_s": 4.0,
        "attempts": 3,
        "idempotent": True,
        "breaker": {
            "window_s": 60,
            "max_failures": 10,
        },
    },
    "reviews": {
        "timeout_s": 4.0,
        "attempts": 2,
        "idempotent": True,
        "breaker": {
            "window_s": 60,
            "max_failures": 20,
        },
    },
}


def pauses_s(name):
    """The pauses between the attempts of one call; each is twice the one before."""
    attempts = SERVICES[name]["attempts"]
    return [FIRST_PAUSE_S * 2**number for number in range(attempts - 1)]


def longest_call_s(name):
    """How long a caller waits at most, if every attempt runs into its time limit."""
    service = SERVICES[name]
    return service["attempts"] * service["timeout_s"] + sum(pauses_s(name))


def is_open(name, failures):
    """Whether the breaker is open, so that calls are refused at once.

    failures: ages in seconds of the failures that were seen.
    """
    breaker = SERVICES[name]["breaker"]
    recent = [age for age in failures if age <= breaker["window_s"]]
    return len(recent) >= breaker["max_failures"]
