"""Placeholder."""
def activate() -> None:
    return None
