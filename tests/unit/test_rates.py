"""A caller's requests are counted over a sliding minute, by all processes together."""

from hypothesis import given
from hypothesis import strategies as st

from repertory_query.access import rates
from repertory_query.access.rates import Rates, RequestCounts


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@given(st.integers(1, 40), st.lists(st.tuples(st.integers(0, 2), st.floats(0, 20)), max_size=200))
def test_a_window_has_at_most_the_limit_and_a_minute_twice_the_limit(
    limit: int, asked: list[tuple[int, float]]
) -> None:
    """The bounds hold whenever requests arrive and whichever process takes them."""
    clock, counts = Clock(), RequestCounts(3)
    processes = [Rates(limit, counts, number, clock) for number in range(3)]
    taken: list[float] = []
    for process, pause in asked:
        clock.now += pause
        seconds = processes[process].wait("key:one")
        if seconds:
            assert 0 < seconds <= 2 * rates.WINDOW_S
        else:
            taken.append(clock.now)
    for window in {int(at // rates.WINDOW_S) for at in taken}:
        assert sum(int(at // rates.WINDOW_S) == window for at in taken) <= limit
    assert all(sum(at - 60 < one <= at for one in taken) <= 2 * limit for at in taken)


@given(st.integers(1, 30), st.floats(0, 59.9), st.integers(0, 2))
def test_a_caller_that_waits_as_long_as_asked_is_let_in(
    limit: int, begin: float, process: int
) -> None:
    """A request just after the announced wait succeeds; one after 90 % of it does not."""
    clock, counts = Clock(), RequestCounts(3)
    processes = [Rates(limit, counts, number, clock) for number in range(3)]
    clock.now += begin
    for number in range(limit):
        assert not processes[number % 3].wait("key:one")
    seconds = processes[process].wait("key:one")
    assert seconds
    clock.now += seconds * 0.9
    assert processes[process].wait("key:one")
    clock.now += seconds * 0.1 + 0.001
    assert not processes[process].wait("key:one")


def test_every_caller_has_its_own_limit() -> None:
    """Callers that share a bucket are counted apart, and so is another kind of request."""
    one = Rates(2, RequestCounts(2), 1, Clock())
    names = [f"address:10.0.0.{number}" for number in range(200)]
    for name in names:
        assert [bool(one.wait(name)) for _ in range(3)] == [False, False, True]
    assert not one.wait("refused", 1)
    assert one.wait("refused", 1)


def test_a_full_bucket_forgets_the_caller_that_was_away_longest() -> None:
    """Memory is bounded, however many addresses send requests."""
    clock = Clock()
    counts = RequestCounts()
    counts._place = lambda caller: (int(caller), 0)  # type: ignore[method-assign]  # one bucket
    one = Rates(1, counts, clock=clock)
    for number in range(1, rates.SLOTS + 1):
        assert not one.wait(str(number))
        clock.now += rates.WINDOW_S if number == 1 else 0
    assert not one.wait("99")
    assert one.wait("2")
    assert not one.wait("1")
