"""The table of known models and their properties.

Other models work too if their folder has the necessary information; see ``description.py``.
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
    """How one model's cosines translate into log odds; see ``search.confidence``.

    ``search.calibration`` fits the values for each model. The defaults are for all-MiniLM-L6-v2.

    Attributes:
        slope: The increase per unit of cosine in the log odds that an item is a good answer.
        bias: The contribution of a cosine of 0; usually negative.
    """

    slope: float = 7.07
    bias: float = -2.04

    def apply(self, cosine: "NDArray[np.float32]") -> "NDArray[np.float32]":
        """The contribution of each cosine to the log odds, in the same shape."""
        odds: NDArray[np.float32] = self.slope * cosine + self.bias
        return odds


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """One embedding model.

    Attributes:
        id: The name on the hub, ``organisation/name``. For a model that only a package carries, the
            name of the package. For a local folder with a model that is not in the table, the
            folder's name and a digest of its files.
        slug: A short, lower-case name, safe in the name of a file or collection.
        dimension: The length of the vectors.
        max_tokens: Longer texts are truncated to this length.
        pooling: How token vectors become one.
        query_prefix: Text put before queries, but not before indexed texts.
        calibration: The calibration of its cosines; None until fitted.
        torch_id: The repository of its torch weights, if different from ``id``.
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
        """Whether the model is on the hub, and not only in a package."""
        return "/" in self.id

    def cut(self, text: str) -> str:
        """The text truncated well above the token limit, with lone surrogates replaced.

        The tokenizer truncates exactly. This limit keeps it from reading megabytes first.
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

# For catalogues and queries in about fifty languages.
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

# Keys are case-folded names: both repositories, and the first without its organisation.
_TABLE = {
    name.casefold(): model
    for model in (BGE_SMALL, MINILM, MULTILINGUAL)
    for name in (model.id, model.torch_id, model.id.partition("/")[2])
} | {"multilingual": MULTILINGUAL, "repertory": ENCODER, ENCODER.id: ENCODER}


def known(name: str) -> Model | None:
    """The model with this name, ignoring case; None if it is not in the table."""
    return _TABLE.get(name.casefold())
