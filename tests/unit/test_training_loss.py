"""The loss for training the encoder, and its evaluation after the training."""

from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, cast
from zlib import crc32

import numpy as np
import pytest

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

pytestmark = pytest.mark.timeout(180)  # on a busy machine the import of torch takes a while


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    """The table encoder, imported late because torch takes seconds to import."""
    from tests.support import table_encoder  # noqa: PLC0415 - imports torch

    return table_encoder


def test_an_item_that_occurs_twice_in_a_batch_is_not_a_negative(tables: ModuleType) -> None:
    """If two queries have the same item, neither row's loss counts the other's item as wrong."""
    model, texts = tables.Table(9), tables.texts
    queries, right = texts([1], [2], [3]), texts([4], [4], [5])
    once = tables.loss_of(model, [[0], [0], [1]], queries, right)
    as_others = tables.loss_of(model, [[0], [2], [1]], queries, right)
    assert once < as_others


def test_the_loss_counts_only_items_that_do_not_answer(tables: ModuleType) -> None:
    """A row ignores copies of its item, also as another row's negative, and items like it."""
    import torch  # noqa: PLC0415 - takes seconds
    from torch.nn import functional  # noqa: PLC0415 - as above

    from training.loss import SCALE  # noqa: PLC0415 - imports torch

    model, texts = tables.Table(9), tables.texts
    alike = tables.DIFFERENT.clone()
    alike[0, 3] = alike[3, 0] = True
    columns = texts([1], [2], [3]), texts([4], [5], [6]), texts([7], [4], [8])
    found = tables.loss_of(model, [[0, 1], [2, 0], [4, 3]], *columns, alike=alike)

    words = functional.normalize(model.table.weight.detach(), dim=1)
    scores = SCALE * words[[1, 2, 3]] @ words[[4, 5, 6, 7, 4, 8]].T  # of items 0, 2, 4, 1, 0, 3
    counted = [[0, 1, 2, 3], [1, 0, 2, 3, 4, 5], [2, 0, 1, 3, 4, 5]]  # the right one first
    by_hand = [
        -functional.log_softmax(row[these], dim=0)[0]
        for row, these in zip(scores, counted, strict=True)
    ]
    assert found == pytest.approx(float(torch.stack(by_hand).mean()), rel=1e-5)


def test_a_nearer_right_item_lowers_the_loss(tables: ModuleType) -> None:
    """The loss is lower if queries equal their items than if they equal the wrong items."""
    model, texts = tables.Table(9), tables.texts
    places = [[0, 2], [1, 3]]
    good = tables.loss_of(model, places, texts([4], [5]), texts([4], [5]), texts([6], [7]))
    bad = tables.loss_of(model, places, texts([6], [7]), texts([4], [5]), texts([6], [7]))
    assert good < bad


def test_chunks_of_equal_length_give_the_same_vectors_in_order(tables: ModuleType) -> None:
    """Short texts are not padded to the longest text of the batch."""
    import torch  # noqa: PLC0415 - takes seconds

    from training.loss import CHUNK  # noqa: PLC0415 - imports torch

    model = tables.Table(50)
    many = tables.texts(*([n % 49 + 1] * (n % 5 + 1) for n in range(3 * CHUNK)))
    found = tables.ranking_loss(model, [[0]], tables.DIFFERENT)._embed(many)
    assert torch.allclose(found, model(many)["sentence_embedding"], atol=1e-6)
    assert len({*model.widths}) > 1


class Letters:
    """An encoder whose vectors depend only on the text."""

    device = SimpleNamespace(type="cpu")

    def encode(self, texts: Sequence[str], **_: object) -> np.ndarray:
        """A random vector for each text."""
        return np.stack([np.random.default_rng(crc32(one.encode())).random(8) for one in texts])


def test_an_evaluation_does_not_depend_on_the_order_of_the_items() -> None:
    """The same items compete with the right ones."""
    from training.dataset import Item, Part, Query  # noqa: PLC0415 - as below
    from training.evaluate import ndcg  # noqa: PLC0415 - imports torch

    items = [
        Item(f"s/{number}", "tool", "s", f"n{number}", "", "MIT", "", Part.TEST)
        for number in range(40)
    ]
    asked = [Query(f"query {number}", "", f"s/{number}", "") for number in range(4)]
    found = [
        ndcg(cast("SentenceTransformer", Letters()), asked, {one.id: one for one in order})
        for order in (items, items[::-1], [*items[5:], *items[:5]])
    ]
    assert found == [found[0]] * 3
