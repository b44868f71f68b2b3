"""Points are divided into writes because a server accepts at most 32 MB at once."""

import numpy as np

from repertory.index import layout
from repertory.index.vectors import Point
from tests.support.points import direction, point


def sizes(points: list[Point]) -> list[int]:
    """The number of points in each write."""
    return [len(chunk) for _, chunk in layout.writes(points)]


def test_a_write_has_a_bounded_number_of_points() -> None:
    """The embedded engine holds Python's global lock until a write is done."""
    points = [point(f"item {n}") for n in range(2 * layout.CHUNK + 1)]
    assert sizes(points) == [layout.CHUNK, layout.CHUNK, 1]


def test_a_write_has_points_of_one_revision() -> None:
    """A write's condition names one revision; older revisions are written first."""
    points = [point("a", revision=2), point("b", revision=1), point("c", revision=2)]
    written = [(number, [one.item for one, _ in chunk]) for number, chunk in layout.writes(points)]
    assert written == [(1, ["b"]), (2, ["a", "c"])]


def test_a_write_is_bounded_by_the_size_of_its_records() -> None:
    """A point that exceeds the bound is written alone."""
    half: dict[str, object] = {"body": "x" * (layout.CHUNK_SIZE // 2 - 200)}
    double: dict[str, object] = {"body": "x" * (layout.CHUNK_SIZE * 2)}
    records = [half, half, half, double, half]
    points = [point(f"item {n}", direction(1), record=one) for n, one in enumerate(records)]
    assert sizes(points) == [2, 1, 1, 1]


def test_a_write_is_bounded_by_the_size_of_its_vectors() -> None:
    """The number of points per write of the vector cache follows from the dimension."""
    dimension = layout.CHUNK_SIZE // layout.NUMBER_SIZE // 3
    vector = np.ones(dimension, np.float32)
    assert sizes([point(f"item {n}", vector, record={}) for n in range(5)]) == [3, 2]
    assert layout.points_of(dimension) == 3
    assert layout.points_of(100 * dimension) == 1
    assert layout.points_of(384) == layout.CHUNK
    assert layout.points_of(8_192) * 8_192 * layout.NUMBER_SIZE < 32 * 2**20
