"""The table of models: the properties of each that its use depends on.

A model that is not in the table works too, if its folder says enough; see ``folder.py``.
"""

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:  # numpy is slow to import, and the command line names models without it
    import numpy as np
    from numpy.typing import NDArray

BGE_QUERY_PREFIX = "Represent this sentence for searching relevant passages: "


class Pooling(StrEnum):
    """How token vectors become one vector."""

    MEAN = "mean"
    CLS = "cls"


class Calibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much one model's cosines tell; see ``search.confidence``.

    ``search.calibration`` fits it for each model. The defaults are those of all-MiniLM-L6-v2.

    Attributes:
        slope: What a cosine of 1 adds to the log odds that an item is a good answer.
        bias: What a cosine of 0 adds to them, usually less than nothing.
    """

    slope: float = 7.07
    bias: float = -2.04

    def apply(self, cosine: "NDArray[np.float32]") -> "NDArray[np.float32]":
        """What cosines add to the log odds, of the same shape."""
        odds: NDArray[np.float32] = self.slope * cosine + self.bias
        return odds


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """One embedding model.

    Attributes:
        id: The name on the hub, ``organisation/name``; for a folder whose model is not in the
            table, the folder's name and a digest of its files; without an organisation, the
            package that carries it.
        slug: Short, lower case, safe in a file or collection name.
        dimension: Length of its vectors.
        max_tokens: Longer texts are cut to this length.
        pooling: How token vectors become one.
        query_prefix: Text before queries, and only before queries.
        calibration: How much its cosines tell; None until it is fitted.
        torch_id: The repository of its torch weights, if other than ``id``.
    """

    id: str
    slug: str
    dimension: int
    max_tokens: int
    pooling: Pooling = Pooling.MEAN
    query_prefix: str = ""
    calibration: Calibration | None = None
    torch_id: str = ""

    @property
    def is_on_hub(self) -> bool:
        """Whether the hub has it, and not only a package."""
        return "/" in self.id

    def cut(self, text: str) -> str:
        """The text cut well beyond the token limit, and without lone surrogates.

        The tokenizer cuts exactly; this keeps it from reading megabytes first.
        """
        return text[: 64 * self.max_tokens].encode("utf-8", "replace").decode()


BGE_SMALL = Model(
    id="Xenova/bge-small-en-v1.5",
    slug="bge-small-en-v1.5",
    dimension=384,
    max_tokens=512,
    pooling=Pooling.CLS,
    query_prefix=BGE_QUERY_PREFIX,
    torch_id="BAAI/bge-small-en-v1.5",
)
MINILM = Model(
    id="Xenova/all-MiniLM-L6-v2",
    slug="all-minilm-l6-v2",
    dimension=384,
    max_tokens=256,
    torch_id="sentence-transformers/all-MiniLM-L6-v2",
)

# For catalogues and queries in some fifty languages.
MULTILINGUAL = Model(
    id="Xenova/paraphrase-multilingual-MiniLM-L12-v2",
    slug="multilingual-minilm-l12-v2",
    dimension=384,
    max_tokens=128,
    torch_id="sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
)

# Trained for tools and skills, from all-MiniLM-L6-v2; see training/README.md.
ENCODER = Model(
    id="repertory-encoder",
    slug="repertory-encoder-4",
    dimension=384,
    max_tokens=256,
)

DEFAULT = BGE_SMALL

# By its names, case-folded: of both repositories, and without the organisation.
_TABLE = {
    name.casefold(): model
    for model in (BGE_SMALL, MINILM, MULTILINGUAL)
    for name in (model.id, model.torch_id, model.id.partition("/")[2])
} | {"multilingual": MULTILINGUAL, "repertory": ENCODER, ENCODER.id: ENCODER}


def known(name: str) -> Model | None:
    """The model of that name, in any case, or None if the table does not have it."""
    return _TABLE.get(name.casefold())
