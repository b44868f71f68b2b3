"""The loss: each query is to be nearer to its item than to the others of its batch (InfoNCE).

Van den Oord, Li and Vinyals, "Representation Learning with Contrastive Predictive Coding" (2018).
An item of the batch that is nearly the same as the right one may answer the query too, and does
not count.
"""

from collections.abc import Iterable
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor
from torch.nn import functional

SCALE = 20.0  # of cosines
CHUNK = 32  # texts that are embedded at once


class RankingLoss(torch.nn.Module):
    """InfoNCE over all items of a batch.

    Args:
        model: The encoder that is trained.
        places: The places of each row's items, the right one first: shape ``(rows, items)``.
        alike: Which items may answer the same: a matrix of all pairs.
    """

    def __init__(self, model: SentenceTransformer, places: Tensor, alike: Tensor) -> None:
        super().__init__()
        self.model = model
        self.places = places
        self.alike = alike

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor) -> Tensor:
        """The mean loss of a batch; ``labels`` are the numbers of its rows."""
        vectors = [functional.normalize(self._embed(one), dim=1) for one in sentence_features]
        queries, *columns = vectors
        scores = SCALE * queries @ torch.cat(columns).T
        places = self.places[labels.cpu()]
        may_answer = self.alike[places[:, 0]][:, places.T.flatten()].to(scores.device)
        right = torch.arange(len(labels), device=scores.device)
        may_answer[right, right] = False
        return functional.cross_entropy(scores.masked_fill(may_answer, -torch.inf), right)

    def _embed(self, texts: dict[str, Any]) -> Tensor:
        """The vectors of texts, a chunk of similar length at a time, which saves padding."""
        lengths = texts["attention_mask"].sum(dim=1)
        order = lengths.argsort()
        found = []
        for chunk in order.split(CHUNK):
            width = int(lengths[chunk].max())
            part = {
                name: value[chunk, :width] for name, value in texts.items() if _is_of_tokens(value)
            }
            found.append(self.model(part)["sentence_embedding"])
        return torch.cat(found)[order.argsort()]


def _is_of_tokens(value: object) -> bool:
    return isinstance(value, Tensor) and value.ndim == 2
