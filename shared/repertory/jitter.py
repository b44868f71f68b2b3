"""Times that vary a little, so that not all processes and servers are asked at once."""

import random

JITTER = 0.2  # the share by which a time is longer or shorter at most

# Not the generator of the module: a draw on our threads would change what others get from it who
# have seeded it, as tests do.
_random = random.Random()  # noqa: S311 - no secret


def jittered(seconds: float) -> float:
    """A time that is up to a fifth longer or shorter."""
    return seconds * _random.uniform(1 - JITTER, 1 + JITTER)
