"""A query that is still being typed: a page searches at each letter."""

TYPING_S = 5.0  # within it, a longer or shorter beginning is the same search being typed


def continues(new: str, at: float, last: str, last_at: float) -> bool:
    """Whether a query is the last one, typed further or taken back, by their times in seconds."""
    return abs(at - last_at) < TYPING_S and (new.startswith(last) or last.startswith(new))
