"""Queries that are still being typed, because a page searches at each letter."""

TYPING_S = 5.0  # within this time, a longer or shorter beginning continues the same search


def continues(new: str, at: float, last: str, last_at: float) -> bool:
    """Whether a query is the last one with letters typed or deleted; times are in seconds."""
    return abs(at - last_at) < TYPING_S and (new.startswith(last) or last.startswith(new))
