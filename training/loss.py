"""The loss (InfoNCE): a query should be nearer to its item than to other items of the batch.

Van den Oord, Li and Vinyals, "Representation Learning with Contrastive Predictive Coding" (2018).
Items that are nearly the same as the right one are ignored, because they may answer the query too.
"""

from collections.abc import Iterable
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor
from torch.nn import functional

SCALE = 20.0  # scale of the cosines
CHUNK = 32  # texts embedded at once


class RankingLoss(torch.nn.Module):
    """InfoNCE over all items of a batch.

    Args:
        model: The encoder that is trained.
        places: The indices of each row's items, the right one first; shape ``(rows, 2)``.
        alike: Whether two items may answer the same query; shape ``(items, items)``.
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
        """Embed texts in chunks of similar length, which reduces padding."""
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
