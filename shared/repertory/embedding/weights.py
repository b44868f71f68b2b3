"""Finds the weights of a model: at a path, in the cache, on the hub, or in a package."""

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from repertory.data_directory import MODELS
from repertory.embedding import packages
from repertory.embedding.description import check_modules, describe, of_files
from repertory.embedding.digests import sha256
from repertory.embedding.download import download
from repertory.embedding.model_files import (
    NEEDED,
    WEIGHTS,
    Digests,
    Format,
    Manifest,
    files_of_weights,
    manifest_file,
    manifest_in,
    weights_in,
)
from repertory.embedding.models import DEFAULT, Model, known
from repertory.errors import DeviceUnavailableError, ModelError, WeightsUnavailableError
from repertory.system.files import write_atomically
from repertory.system.progress import Download
from repertory.text import cut, one_line

# The pause after a failed download if a package is used instead. Without it, each search from a
# shell would import the hub's client, and wait for a timeout if a firewall drops packets.
RETRY_INTERVAL_S = 600.0


class Origin(StrEnum):
    """The place where weights were found."""

    PATH = "path"
    CACHE = "cache"
    HUB = "hub"
    PACKAGE = "package"


class WeightFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a model.

    Attributes:
        model: The model; not the requested one if a package replaces it.
        file: The ONNX graph, or the safetensors in a folder that sentence-transformers can load.
        tokenizer: The path of ``tokenizer.json``.
        origin: The place where the files were found.
        notice: A sentence for the user if another model is used, with the reason; else empty.
    """

    model: Model
    file: Path
    tokenizer: Path
    origin: Origin
    notice: str = ""


def resolve(
    name: str | None,
    form: Format,
    data_dir: Path,
    progress: Download | None = None,
    digests: Path | None = None,
) -> WeightFiles:
    """Find the weights of a model, downloading them if necessary.

    Only the default model may be replaced by another one from an installed package, and only if the
    caller did not request it by name.

    Args:
        name: A name from the table of models, a folder, a repository on the hub, or None for the
            default.
        form: The engine that the weights are for.
        data_dir: The data directory; its folder ``models`` is the cache.
        progress: Called with the bytes received so far and the total.
        digests: The folder for digests of files; None for ``digests`` in the cache.

    Raises:
        WeightsUnavailableError: No place has the weights; the message lists the places.
        ModelError: The model cannot be used; the message says why.
    """
    models = data_dir / MODELS
    digests = digests or models / "digests"
    model = DEFAULT if name is None else known(name)
    if name is not None and model is None and (path := _path(name)):
        return _from_path(path, form, digests)
    repository = _repository(model, form) if model else str(name)
    folder = models / repository.replace("/", "--")
    if _is_complete(folder, form):
        with naming(folder):
            return _from_hub(folder, form, Origin.CACHE, model, repository, digests)

    stand_in, damaged = _stand_in(name, model, form, digests)
    reason = _refusal(model) or _try_hub(
        repository, form, folder, progress, is_needed=stand_in is None
    )
    if not reason:
        return _from_hub(folder, form, Origin.HUB, model, repository, digests)
    if stand_in:
        return _from_package(stand_in, model, reason)
    tried = filter(None, (f"not in the cache ({folder})", damaged, reason))
    raise WeightsUnavailableError(
        f"The weights of {name or repository} are unavailable: {'; '.join(tried)}; connect once, "
        f"give a folder that has them, or install the extra repertory[offline] for a smaller model."
    )


@contextlib.contextmanager
def naming(folder: Path) -> Iterator[None]:
    """Add the folder of a cached model to its errors, because its files may be damaged.

    Only their sizes are checked before use.
    """
    try:
        yield
    except DeviceUnavailableError:
        raise
    except ModelError as exc:
        raise ModelError(
            f"{exc} If a file of the model is damaged, remove the folder {folder}: it is "
            "downloaded again."
        ) from exc


def _path(name: str) -> Path | None:
    """The model folder if the name is a path to one; None for a name on the hub.

    Raises:
        ModelError: There is no such folder, or the name is not a valid path.
    """
    is_path = name.startswith((".", "~")) or Path(name).is_absolute()
    try:
        path = Path(name).expanduser() if is_path else Path(name)
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        is_folder = False
    except (OSError, RuntimeError, ValueError) as exc:  # too long; unknown user after ~; a NUL
        reason = getattr(exc, "strerror", None) or exc
        shown = cut(one_line(name), 100)
        raise ModelError(f"There is no model {shown!r} ({reason}); give another name.") from exc
    if is_path and not is_folder:
        raise ModelError(f"There is no model folder {path}; give one, or the name of a model.")
    return path if is_folder else None


def _repository(model: Model, form: Format) -> str:
    return (model.torch_id if form is Format.TORCH else "") or model.id


def _is_complete(folder: Path, form: Format) -> bool:
    """Whether a cached folder has a manifest, all files listed there, and those of this engine."""
    try:
        content = manifest_file(folder, form).read_bytes()
        files = msgspec.json.decode(content, type=Manifest).files
        return (
            all((folder / name).stat().st_size == size for name, size in files.items())
            and all(name in files for name in NEEDED[form])
            and any(name in files for name in WEIGHTS[form])
        )
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False


def _from_path(folder: Path, form: Format, digests: Path) -> WeightFiles:
    folder = folder.absolute()  # links are not resolved, as the folder's name is part of the id
    weights_in(folder, form)
    return _from_folder(folder, form, Origin.PATH, describe(folder, _digests(folder, digests)))


def _digests(folder: Path, digests: Path) -> Digests:
    """The digests of a folder's tokenizer and weights, for both engines, as these must agree."""
    try:
        return Digests(
            weights=tuple(sha256(file, digests) for file in files_of_weights(folder)),
            tokenizer=sha256(folder / "tokenizer.json", digests),
        )
    except OSError as exc:
        raise ModelError(f"The weights in {folder} cannot be read: {exc}.") from exc


def _from_hub(
    folder: Path,
    form: Format,
    origin: Origin,
    model: Model | None,
    repository: str,
    digests: Path,
) -> WeightFiles:
    """The files of a cached folder.

    The model depends on the files and not only on the name, because a repository may have had other
    files before, even that of a model in the table.
    """
    if model is None:
        manifest = manifest_in(folder)
        content = (manifest.content or manifest.revision) if manifest else ""
        model = describe(folder, repository=repository, content=content)
    else:
        model = of_files(model, _digests(folder, digests))
    return _from_folder(folder, form, origin, model)


def _from_folder(folder: Path, form: Format, origin: Origin, model: Model) -> WeightFiles:
    check_modules(folder)
    return WeightFiles(
        model=model,
        file=weights_in(folder, form),
        tokenizer=folder / "tokenizer.json",
        origin=origin,
    )


def _from_package(found: packages.Packaged, asked: Model | None, reason: str) -> WeightFiles:
    model = found.package.model
    notice = ""
    if asked and asked != model:
        notice = (
            f"The installed model {model.id} is used instead of {asked.id}, which is unavailable: "
            f"{reason}."
        )
    return WeightFiles(
        model=model,
        file=found.weights,
        tokenizer=found.tokenizer,
        origin=Origin.PACKAGE,
        notice=notice,
    )


def _stand_in(
    name: str | None, model: Model | None, form: Format, digests: Path
) -> tuple[packages.Packaged | None, str]:
    """The installed package to use if the hub fails, and the reason if one cannot be used.

    Only the default model may be replaced by another one.
    """
    try:
        found = packages.find(model, form, digests) if model else None
        if name is None and found is None:
            found = packages.find(None, form, digests)
    except (WeightsUnavailableError, OSError) as exc:
        return None, str(exc)
    return found, ""


def _refusal(model: Model | None) -> str:
    """The reason not to ask the hub; empty if it may be asked."""
    if model and not model.is_on_hub:
        return f"it comes only in the package {model.id}"
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        return "the hub was not asked because HF_HUB_OFFLINE is set"
    return ""


def _try_hub(
    repository: str, form: Format, folder: Path, progress: Download | None, *, is_needed: bool
) -> str:
    """Download a model, and return the reason if that failed, else an empty string.

    If the model is not needed, a failure is recorded, and the hub is not asked again until
    ``RETRY_INTERVAL_S`` has passed.
    """
    failure = folder.with_name(f"{folder.name}.unavailable")
    if not is_needed and (reason := _recent(failure)):
        return reason
    try:
        download(repository, form, folder, progress)
        reason = ""
    except WeightsUnavailableError as exc:
        why = str(exc).removeprefix(f"{repository}: ")  # the notice names it already
        reason = f"the hub did not provide its files: {why}"
    with contextlib.suppress(OSError):
        if reason and not is_needed:
            write_atomically(failure, reason.encode())
        else:
            failure.unlink(missing_ok=True)
    return reason


def _recent(failure: Path) -> str:
    """The reason for a failed download within ``RETRY_INTERVAL_S``, else empty."""
    try:
        if 0 <= time.time() - failure.stat().st_mtime < RETRY_INTERVAL_S:
            return failure.read_text("utf-8", "replace")
    except OSError:
        pass
    return ""
