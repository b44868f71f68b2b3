"""The model that the configuration files in its folder describe."""

import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec

from repertory.embedding.model_files import Digests
from repertory.embedding.models import BGE_QUERY_PREFIX, Model, Pooling
from repertory.embedding.published import published
from repertory.errors import ModelError
from repertory.system.untrusted_files import read_bytes
from repertory.text import one_line

MAX_CONFIG_SIZE = 16 << 20  # bytes; usually a few hundred, with all tokens of Gemma over a million

_BGE_ENGLISH = re.compile(r"bge-(small|base|large)-en\b", re.IGNORECASE)
_NOT_ENCODERS = {
    "ForCausalLM": "it is a decoder that generates text",
    "LMHeadModel": "it is a decoder that generates text",
    "ForConditionalGeneration": "it is an encoder-decoder that generates text",
    "ForSequenceClassification": "it is a classifier or reranker, which has no sentence vectors",
}
# These begin numbering positions after the padding token, so fewer than stated are usable.
_POSITIONS_AFTER_PADDING = {"roberta", "xlm-roberta", "camembert", "mpnet"}
# The names before sentence-transformers 5.5, and those since.
_PLAIN_MODULES = {
    "sentence_transformers.models.Transformer",
    "sentence_transformers.models.Pooling",
    "sentence_transformers.models.Normalize",
    "sentence_transformers.base.modules.transformer.Transformer",
    "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
    "sentence_transformers.base.modules.normalize.Normalize",
}


class _Config(msgspec.Struct, frozen=True):
    """The fields read from a ``config.json``."""

    architectures: list[str] | None = None
    model_type: str | None = None
    is_decoder: bool | None = None
    is_encoder_decoder: bool | None = None
    hidden_size: int | None = None
    dim: int | None = None
    d_model: int | None = None
    max_position_embeddings: int | None = None
    pad_token_id: int | None = None
    name_or_path: str | None = msgspec.field(default=None, name="_name_or_path")


def check_architecture(folder: Path) -> None:
    """Refuse a model that is not a sentence encoder according to its ``config.json``.

    Raises:
        ModelError: The model cannot be used; the message says why.
    """
    config = _config(folder)
    if config.is_encoder_decoder:
        raise _refusal(folder, "it is an encoder-decoder")
    if config.is_decoder:
        raise _refusal(folder, "it is a decoder")
    for architecture in config.architectures or ():
        for ending, reason in _NOT_ENCODERS.items():
            if architecture.endswith(ending):
                raise _refusal(folder, f"{reason} ({architecture})")


def check_modules(folder: Path) -> None:
    """Refuse a model with layers other than Transformer, Pooling and Normalize.

    An ONNX graph lacks layers after the pooling, and torch would import the code of an unknown
    layer.

    Raises:
        ModelError: The model has such a layer.
    """
    for module in _read(folder / "modules.json", list[dict[str, Any]], is_optional=True):
        kind = str(module.get("type", ""))
        if kind not in _PLAIN_MODULES:
            raise _refusal(folder, f"its modules.json has a layer of type {one_line(kind)[:100]}")


def describe(
    folder: Path, digests: Digests | None = None, repository: str = "", content: str = ""
) -> Model:
    """The model that a folder describes.

    A folder with the published files of a model in the table, and no contradicting file, is that
    model. The folder's name does not count. Any other folder gets an id of its own.

    Args:
        folder: Has at least ``config.json``.
        digests: The digests of its files, if it is a local folder.
        repository: Its name on the hub, which is unique; empty for a local folder.
        content: A digest or revision that identifies the current files of the repository.

    Raises:
        ModelError: The description is incomplete, or the model is not a sentence encoder.
    """
    check_architecture(folder)
    config = _config(folder)
    dimension = _number(folder, config, "hidden_size", "dim", "d_model")
    pooling = _pooling(folder)
    name = _name(folder)
    model = published(digests.weights, digests.tokenizer) if digests else None
    if model and model.dimension == dimension and pooling in (None, model.pooling):
        return model
    bge = any(_BGE_ENGLISH.search(trace) for trace in (name, config.name_or_path or ""))
    slug = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:40] or "model"
    found = Model(
        id=repository or name,
        slug=slug,
        dimension=dimension,
        max_tokens=_max_tokens(folder, config),
        pooling=pooling or (Pooling.CLS if bge else Pooling.MEAN),
        query_prefix=BGE_QUERY_PREFIX if bge else "",
    )
    # Vectors depend on these properties too, and not only on the files.
    files = digests or [repository, content]
    digest = hashlib.sha256(msgspec.json.encode([files, found])).hexdigest()
    return msgspec.structs.replace(
        found, id=repository or f"{name}@{digest[:32]}", slug=f"{slug}-{digest[:16]}"
    )


def of_files(model: Model, digests: Digests) -> Model:
    """A model of the table, with a slug of its own if the files are not its published ones."""
    if published(digests.weights, digests.tokenizer) == model:
        return model
    digest = hashlib.sha256(msgspec.json.encode(digests)).hexdigest()
    return msgspec.structs.replace(model, slug=f"{model.slug}-{digest[:16]}")


def _name(folder: Path) -> str:
    """The model's name without its organisation, from a folder in this cache or the hub's."""
    if folder.parent.name == "snapshots":  # models--organisation--name/snapshots/revision
        folder = folder.parent.parent
    return folder.name.rpartition("--")[2]


def _max_tokens(folder: Path, config: _Config) -> int:
    positions = _number(folder, config, "max_position_embeddings")
    if config.model_type in _POSITIONS_AFTER_PADDING:
        positions -= (config.pad_token_id or 0) + 1
    if positions <= 0:
        raise _refusal(folder, "its config.json leaves no position for a token")
    stated = _read(folder / "sentence_bert_config.json", is_optional=True).get("max_seq_length")
    if stated is None:  # sentence-transformers 6 writes the limit only here
        tokenizer = _read(folder / "tokenizer_config.json", is_optional=True)
        stated = tokenizer.get("model_max_length")
    return min(stated, positions) if isinstance(stated, int) and stated > 2 else positions


def _pooling(folder: Path) -> Pooling | None:
    """The pooling in ``1_Pooling/config.json``, or None if that file is missing."""
    config = _read(folder / "1_Pooling" / "config.json", is_optional=True)
    if not config:
        return None
    modes = {key.removeprefix("pooling_mode_") for key, on in config.items() if on is True}
    modes |= {str(config["pooling_mode"])} if "pooling_mode" in config else set()
    modes -= {"include_prompt"}
    if modes in ({"mean_tokens"}, {"mean"}):
        return Pooling.MEAN
    if modes in ({"cls_token"}, {"cls"}):
        return Pooling.CLS
    raise _refusal(folder, f"its pooling is {', '.join(sorted(modes))}, neither mean nor cls")


def _config(folder: Path) -> _Config:
    config: _Config = _read(folder / "config.json", _Config)
    return config


def _number(folder: Path, config: _Config, *keys: str) -> int:
    for key in keys:
        if 0 < (value := getattr(config, key) or 0) <= 100_000:
            return int(value)
    raise _refusal(folder, f"its config.json has no {keys[0]}")


def _read(file: Path, kind: Any = dict, *, is_optional: bool = False) -> Any:  # noqa: ANN401 - JSON
    """Read a JSON file as an object of type ``kind``; empty if optional and missing."""
    if is_optional and not file.is_file():
        return kind()
    try:
        return msgspec.json.decode(read_bytes(str(file), MAX_CONFIG_SIZE), type=kind)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise ModelError(f"The model's file {file} cannot be read: {exc}.") from exc


def _refusal(folder: Path, reason: str) -> ModelError:
    return ModelError(f"The model in {folder} cannot be used: {reason}; choose a sentence encoder.")
