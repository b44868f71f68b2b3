"""The loss that the encoder is trained with."""

from typing import TYPE_CHECKING, Any, cast

import pytest
import torch
from torch.nn import functional

from training.loss import CHUNK, SCALE, RankingLoss

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

pytestmark = pytest.mark.timeout(180)  # on a busy machine the import of torch takes a while

DIFFERENT = torch.eye(8, dtype=torch.bool)  # of eight items each is like itself alone


class Table(torch.nn.Module):
    """An encoder of texts of one word or more: the mean of their words' vectors, by a table."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(size, 8)
        self.widths: list[int] = []

    def forward(self, features: dict[str, Any]) -> dict[str, torch.Tensor]:
        """The vectors of texts."""
        self.widths.append(features["input_ids"].shape[1])
        mask = features["attention_mask"][:, :, None]
        words = self.table(features["input_ids"]) * mask
        return {"sentence_embedding": words.sum(1) / mask.sum(1)}


def texts(*words: list[int]) -> dict[str, Any]:
    """Padded texts."""
    width = max(map(len, words))
    return {
        "input_ids": torch.tensor([one + [0] * (width - len(one)) for one in words]),
        "attention_mask": torch.tensor(
            [[1] * len(one) + [0] * (width - len(one)) for one in words]
        ),
        "modality": "text",
    }


def loss_of(model: Table, places: list[list[int]], *columns: dict[str, Any]) -> float:
    """The loss of a batch of all rows."""
    loss = RankingLoss(cast("SentenceTransformer", model), torch.tensor(places), DIFFERENT)
    return float(loss(columns, torch.arange(len(places))).detach())


def test_an_item_that_stands_twice_in_a_batch_does_not_count_as_wrong() -> None:
    """Two queries for one item: neither loses by the other's row."""
    torch.manual_seed(1)
    model = Table(9)
    queries, right = texts([1], [2], [3]), texts([4], [4], [5])
    once = loss_of(model, [[0], [0], [1]], queries, right)
    as_others = loss_of(model, [[0], [2], [1]], queries, right)
    assert once < as_others


def test_the_loss_is_that_of_the_items_that_do_not_answer() -> None:
    """By hand: the first query's item stands as the other row's wrong one, and item 3 is like 0."""
    torch.manual_seed(1)
    model = Table(9)
    alike = DIFFERENT.clone()
    alike[0, 3] = alike[3, 0] = True
    places = torch.tensor([[0, 1], [2, 0], [4, 3]])
    columns = texts([1], [2], [3]), texts([4], [5], [6]), texts([7], [4], [8])
    loss = RankingLoss(cast("SentenceTransformer", model), places, alike)
    found = float(loss(columns, torch.arange(3)).detach())

    words = functional.normalize(model.table.weight.detach(), dim=1)
    scores = SCALE * words[[1, 2, 3]] @ words[[4, 5, 6, 7, 4, 8]].T  # of items 0, 2, 4, 1, 0, 3
    counted = [[0, 1, 2, 3], [1, 0, 2, 3, 4, 5], [2, 0, 1, 3, 4, 5]]  # the right one first
    by_hand = [
        -functional.log_softmax(row[these], dim=0)[0]
        for row, these in zip(scores, counted, strict=True)
    ]
    assert found == pytest.approx(float(torch.stack(by_hand).mean()), rel=1e-5)


def test_a_nearer_right_item_lowers_the_loss() -> None:
    """A query that is its item has less loss than one that is the wrong item."""
    torch.manual_seed(1)
    model = Table(9)
    places = [[0, 2], [1, 3]]
    good = loss_of(model, places, texts([4], [5]), texts([4], [5]), texts([6], [7]))
    bad = loss_of(model, places, texts([6], [7]), texts([4], [5]), texts([6], [7]))
    assert good < bad


def test_chunks_of_equal_length_give_the_same_vectors_in_order() -> None:
    """Short texts are not padded to the longest of the batch."""
    model = Table(50)
    many = texts(*([n % 49 + 1] * (n % 5 + 1) for n in range(3 * CHUNK)))
    loss = RankingLoss(cast("SentenceTransformer", model), torch.tensor([[0]]), DIFFERENT)
    found = loss._embed(many)
    assert torch.allclose(found, Table.forward(model, many)["sentence_embedding"], atol=1e-6)
    assert len({*model.widths}) > 1
