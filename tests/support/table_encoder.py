"""A table-based text encoder whose ranking loss can be calculated by hand; it needs torch."""

from typing import TYPE_CHECKING, Any, cast

import torch

from training.loss import RankingLoss

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

DIFFERENT = torch.eye(8, dtype=torch.bool)  # eight items, each similar only to itself


class Table(torch.nn.Module):
    """An encoder that averages the vectors of a text's words, taken from a table.

    Tables of the same size are equal.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.table = torch.nn.Embedding(size, 8)
        self.widths: list[int] = []

    def forward(self, features: dict[str, Any]) -> dict[str, torch.Tensor]:
        """The vectors of a batch of texts."""
        self.widths.append(features["input_ids"].shape[1])
        mask = features["attention_mask"][:, :, None]
        words = self.table(features["input_ids"]) * mask
        return {"sentence_embedding": words.sum(1) / mask.sum(1)}


def texts(*words: list[int]) -> dict[str, Any]:
    """The model input of some texts, padded to the same length."""
    width = max(map(len, words))
    return {
        "input_ids": torch.tensor([one + [0] * (width - len(one)) for one in words]),
        "attention_mask": torch.tensor(
            [[1] * len(one) + [0] * (width - len(one)) for one in words]
        ),
        "modality": "text",
    }


def ranking_loss(model: Table, places: list[list[int]], alike: torch.Tensor) -> RankingLoss:
    """The ranking loss of an encoder; see ``RankingLoss``."""
    return RankingLoss(cast("SentenceTransformer", model), torch.tensor(places), alike)


def loss_of(
    model: Table,
    places: list[list[int]],
    *columns: dict[str, Any],
    alike: torch.Tensor = DIFFERENT,
) -> float:
    """The value of the ranking loss for one batch of all rows."""
    loss = ranking_loss(model, places, alike)
    return float(loss(columns, torch.arange(len(places))).detach())
