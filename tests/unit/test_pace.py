"""The number of texts per batch of a build adapts to their duration."""

import pytest

from repertory.indexing.job import QueueName
from repertory.indexing.pace import BATCH_S, MAX_TEXTS, MIN_TEXTS, Pace

SECONDS_PER_TEXT = {"embedded on a CPU": 0.02, "only written": 0.001, "on a slow disk": 0.1}


@pytest.mark.parametrize("each", SECONDS_PER_TEXT.values(), ids=SECONDS_PER_TEXT)
def test_all_batches_of_a_build_take_about_the_same_time(each: float) -> None:
    """This bounds the wait of a save, and texts without embedding are written in large batches."""
    pace = Pace()
    for _ in range(10):
        texts = pace.texts(QueueName.BUILDS, None)
        pace.took(QueueName.BUILDS, texts, each * texts)
    assert MIN_TEXTS <= texts <= MAX_TEXTS
    assert texts in {MIN_TEXTS, MAX_TEXTS} or each * texts == pytest.approx(BATCH_S, rel=0.1)


def test_a_slow_batch_makes_the_next_one_small() -> None:
    """The size drops at once, because the next texts may also need embedding."""
    pace = Pace()
    for _ in range(4):
        pace.took(QueueName.BUILDS, MAX_TEXTS, 0.1)
    assert pace.texts(QueueName.BUILDS, None) == MAX_TEXTS
    pace.took(QueueName.BUILDS, MAX_TEXTS, 4.0)
    assert pace.texts(QueueName.BUILDS, None) == MIN_TEXTS


def test_the_batch_sizes_of_saves_and_builds_are_independent() -> None:
    """All saves are processed at once because the same user waits for them."""
    pace = Pace()
    before = pace.texts(QueueName.BUILDS, None)
    pace.took(QueueName.SAVES, MAX_TEXTS, 0.1)
    assert pace.texts(QueueName.BUILDS, None) == before
    pace.took(QueueName.SAVES, 10, 5.0)
    pace.took(QueueName.BUILDS, 10, 5.0)
    assert pace.texts(QueueName.SAVES, None) == MAX_TEXTS
