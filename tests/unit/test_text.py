"""The display of texts."""

from repertory.text import ago


def test_a_span_of_time_is_in_its_largest_unit() -> None:
    """One unit, and no number if the span is too short."""
    shown = [ago(seconds) for seconds in (0, 0.9, 1, 59, 60, 7_300, 200_000)]
    assert shown == [
        *("just now", "just now", "1 second ago", "59 seconds ago", "1 minute ago"),
        *("2 hours ago", "2 days ago"),
    ]


def test_a_span_of_time_can_be_coarse() -> None:
    """A page that shows minutes seldom changes."""
    shown = [ago(seconds, least=60) for seconds in (59, 60, 7_300)]
    assert shown == ["just now", "1 minute ago", "2 hours ago"]
