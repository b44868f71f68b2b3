"""The base class of the engines that run a model."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from repertory.embedding.engine import CPU_BATCH, GPU_BATCH, EmbeddingEngine, Vectors
from repertory.embedding.known_words import knows
from repertory.embedding.models import Model
from repertory.embedding.weights import WeightFiles
from repertory.errors import ModelError


class ModelEngine(EmbeddingEngine):
    """An engine with the files of a model, including its tokenizer."""

    def __init__(self, weights: WeightFiles, device: str) -> None:
        self.model = weights.model
        self.files = (weights.file, weights.tokenizer)
        self.device = device
        self.batch = CPU_BATCH if device == "cpu" else GPU_BATCH
        self._tokenizer = _load_tokenizer(weights.tokenizer, weights.model)

    def forget_unknown(self, vectors: Vectors, texts: Sequence[str]) -> None:
        """Set the vectors of queries to zero if the model knows fewer than half of their words."""
        vectors[[not knows(self._tokenizer, self.model.cut(text)) for text in texts]] = 0.0


def _load_tokenizer(file: Path, model: Model) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as exc:  # the tokenizers library raises nothing narrower
        raise ModelError(f"The tokenizer {file} cannot be loaded: {str(exc)[:300]}.") from exc
    # The file may set padding to a fixed length, and truncation below the model's limit.
    tokenizer.no_padding()
    tokenizer.enable_truncation(model.max_tokens)
    return tokenizer
