"""How many texts of a build are done at once."""

import pytest

from repertory.indexing.job import QueueName
from repertory.indexing.pace import BATCH_S, MAX_TEXTS, MIN_TEXTS, Pace

SECONDS_PER_TEXT = {"embedded on a CPU": 0.02, "only written": 0.001, "on a slow disk": 0.1}


@pytest.mark.parametrize("each", SECONDS_PER_TEXT.values(), ids=SECONDS_PER_TEXT)
def test_batches_of_a_build_take_about_as_long(each: float) -> None:
    """So a save waits for no longer, and texts without embedding are not written in small parts."""
    pace = Pace()
    for _ in range(10):
        texts = pace.texts(QueueName.BUILDS, None)
        pace.took(QueueName.BUILDS, texts, each * texts)
    assert MIN_TEXTS <= texts <= MAX_TEXTS
    assert texts in {MIN_TEXTS, MAX_TEXTS} or each * texts == pytest.approx(BATCH_S, rel=0.1)


def test_a_batch_that_took_long_makes_the_next_one_small() -> None:
    """At once: what comes next may have to be embedded, too."""
    pace = Pace()
    for _ in range(4):
        pace.took(QueueName.BUILDS, MAX_TEXTS, 0.1)
    assert pace.texts(QueueName.BUILDS, None) == MAX_TEXTS
    pace.took(QueueName.BUILDS, MAX_TEXTS, 4.0)
    assert pace.texts(QueueName.BUILDS, None) == MIN_TEXTS


def test_saves_are_taken_together_whatever_builds_take() -> None:
    """All of them wait for the same user; and builds are as large whatever saves take."""
    pace = Pace()
    before = pace.texts(QueueName.BUILDS, None)
    pace.took(QueueName.SAVES, MAX_TEXTS, 0.1)
    assert pace.texts(QueueName.BUILDS, None) == before
    pace.took(QueueName.SAVES, 10, 5.0)
    pace.took(QueueName.BUILDS, 10, 5.0)
    assert pace.texts(QueueName.SAVES, None) == MAX_TEXTS
