"""Randomised intervals, so that not all processes act, and no server is asked, at once."""

import random

JITTER = 0.2  # the largest relative change of an interval

# Not the random module's shared generator: drawing from it would disturb code that seeds it,
# such as tests.
_random = random.Random()  # noqa: S311 - no secret


def jittered(seconds: float) -> float:
    """The interval, randomly up to a fifth longer or shorter."""
    return seconds * _random.uniform(1 - JITTER, 1 + JITTER)
