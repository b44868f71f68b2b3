"""The files of a model in a folder with the hub's layout."""

import contextlib
from enum import StrEnum
from pathlib import Path

import msgspec

from repertory.errors import ModelError

SOURCE = ".source"  # the file name suffix; see ``source_of``


class Format(StrEnum):
    """The kind of engine that the weights are for."""

    ONNX = "onnx"
    TORCH = "torch"


# The accepted files of weights, best first. Quantised variants are excluded because their vectors
# depend on the batch, and pickles because loading one runs code.
WEIGHTS = {
    Format.ONNX: ("onnx/model.onnx", "model.onnx"),
    Format.TORCH: ("model.safetensors",),
}
# The other files that an engine requires.
NEEDED = {
    Format.ONNX: ("config.json", "tokenizer.json"),
    Format.TORCH: ("config.json", "tokenizer.json", "modules.json"),
}


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a cached folder. It is written last, so a folder that has one is complete.

    Attributes:
        repository: The name on the hub.
        revision: The commit that the files were downloaded from.
        files: The size in bytes of each file.
        content: A digest of all files in the repository that affect the vectors of any engine;
            empty in manifests of earlier releases.
    """

    repository: str
    revision: str
    files: dict[str, int]
    content: str = ""


def manifest_in(folder: Path) -> Manifest | None:
    """The first readable manifest of a cached folder; all formats have the same revision."""
    for form in Format:
        with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            return msgspec.json.decode(manifest_file(folder, form).read_bytes(), type=Manifest)
    return None


def manifest_file(folder: Path, form: Format) -> Path:
    """The path of a cached folder's manifest for a format."""
    return folder / f"manifest.{form}.json"


def weights_in(folder: Path, form: Format) -> Path:
    """The file of weights in a folder.

    Raises:
        ModelError: The folder lacks a file that an engine of this format needs.
    """
    for name in NEEDED[form]:
        if not (folder / name).is_file():
            raise ModelError(
                f"The model folder {folder} has no {name}; give one with the hub's layout."
            )
    for name in WEIGHTS[form]:
        if (folder / name).is_file():
            return folder / name
    raise ModelError(
        f"The model folder {folder} has no {form} weights ({' or '.join(WEIGHTS[form])}); "
        f"export them, or give another model."
    )


class Digests(msgspec.Struct, frozen=True):
    """The SHA-256, in hex, of the files that determine a folder's vectors."""

    weights: tuple[str, ...]
    tokenizer: str


def files_of_weights(folder: Path) -> list[Path]:
    """All files of weights in a folder that an engine would use, including external ones."""
    found = []
    for names in WEIGHTS.values():
        used = next((folder / name for name in names if (folder / name).is_file()), None)
        if used:
            data = data_of(used)
            found += [used, data] if data.is_file() else [used]
    return found


def data_of(graph: Path) -> Path:
    """The path for a graph's external weights; the file exists only if the graph has any."""
    return graph.with_name(f"{graph.name}_data")


def source_of(optimised: Path) -> Path:
    """The file that stores the path of the graph from which an optimised one was made.

    Its name begins with the digest of that path, like the names of optimised graphs.
    """
    return optimised.with_name(f"{optimised.name.partition('-')[0]}{SOURCE}")
