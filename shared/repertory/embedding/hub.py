"""Downloads weights from the hub: only the required files, checked against the hub's checksums.

``snapshot_download`` does not fit: it checks no content, and refuses no model between the small
files and the weights. Import this module only to download: ``huggingface_hub`` takes 0.3 s.
"""

import hashlib
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from filelock import FileLock
from huggingface_hub import HfApi
from huggingface_hub.utils.tqdm import disable_progress_bars

from repertory.embedding.folder import (
    NEEDED,
    WEIGHTS,
    Format,
    Manifest,
    Progress,
    check_architecture,
    manifest_file,
)
from repertory.errors import ModelError, WeightsUnavailableError
from repertory.files import write_atomically

CONNECT_TIMEOUT_S = 5.0  # short, because a search may wait for it

_OPTIONAL = (
    "1_Pooling/config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "vocab.txt",
)


class _Remote(msgspec.Struct, frozen=True):
    """One file of a repository, as the hub lists it."""

    name: str
    size: int
    sha256: str  # of a large file; empty for one that is kept in git
    blob: str  # the git object of a file that is kept in git


def fetch(repository: str, form: Format, folder: Path, progress: Progress | None = None) -> None:
    """Download a model into a folder of the cache and write its manifest last.

    A complete file is not downloaded again, and an interrupted response is resumed.

    Args:
        repository: ``organisation/name``.
        form: For which engine.
        folder: Created if missing.
        progress: Called with the bytes that have arrived and the total, from another thread.

    Raises:
        WeightsUnavailableError: The hub is unreachable, does not have the model, or sent a file
            with a wrong checksum.
        ModelError: No engine of this format can use the model.
    """
    endpoint = os.environ.get("HF_ENDPOINT") or None
    disable_progress_bars()
    with _translated(repository):
        api = HfApi(endpoint=endpoint)
        info = api.model_info(repository, files_metadata=True, timeout=CONNECT_TIMEOUT_S)
        remote = {
            sibling.rfilename: _Remote(
                sibling.rfilename,
                sibling.size or 0,
                sibling.lfs.sha256 if sibling.lfs else "",
                sibling.blob_id or "",
            )
            for sibling in info.siblings or []
        }
    small, large = _choose(repository, form, remote)
    wanted = [*small, *large]
    with _translated(repository), _locked(folder), _reporting(folder, wanted, progress):
        for file in wanted:
            if file is large[0]:
                check_architecture(folder)
            local = folder / file.name
            api.hf_hub_download(
                repository,
                file.name,
                revision=info.sha,
                local_dir=folder,
                etag_timeout=CONNECT_TIMEOUT_S,
            )
            if not _intact(local, file):
                local.unlink()
                raise WeightsUnavailableError(
                    f"{repository}: what arrived as {file.name} is not what the hub lists, by its "
                    f"checksum"
                )
        manifest = Manifest(
            repository=repository,
            revision=info.sha or "",
            files={file.name: file.size for file in wanted},
        )
        write_atomically(manifest_file(folder, form), msgspec.json.encode(manifest))
        shutil.rmtree(folder / ".cache", ignore_errors=True)  # the client's notes for resuming


def _choose(
    repository: str, form: Format, remote: dict[str, _Remote]
) -> tuple[list[_Remote], list[_Remote]]:
    """The small files that an engine requires, and the weights."""
    weights = next((name for name in WEIGHTS[form] if name in remote), None)
    missing = [name for name in NEEDED[form] if name not in remote]
    if weights is None or missing:
        raise ModelError(
            f"The model {repository} cannot be used: on the hub it has no "
            f"{missing[0] if missing else ' or '.join(WEIGHTS[form])}; choose another model."
        )
    small = dict.fromkeys([*NEEDED[form], *_OPTIONAL])
    large = (weights, f"{weights}_data")  # beside a graph of more than two gigabytes
    return (
        [remote[name] for name in small if name in remote],
        [remote[name] for name in large if name in remote],
    )


def _intact(local: Path, file: _Remote) -> bool:
    if local.stat().st_size != file.size:
        return False
    if file.sha256:
        with local.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256
    content = local.read_bytes()
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
    return blob.hexdigest() == file.blob


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder: a second process waits, and then finds the files."""
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        yield


@contextmanager
def _translated(repository: str) -> Iterator[None]:
    try:
        yield
    except ModelError:
        raise
    except Exception as exc:
        # The errors of the hub's HTTP client pass through, and its version decides which client
        # that is, so there is no narrower class.
        reason = (str(exc) or type(exc).__name__).strip().splitlines()[0]
        raise WeightsUnavailableError(f"{repository}: {reason[:300]}") from exc


@contextmanager
def _reporting(folder: Path, wanted: list[_Remote], progress: Progress | None) -> Iterator[None]:
    """Report the bytes on disk ten times a second.

    The hub's client has two transfer methods with different progress; both write into the folder.
    """
    if progress is None:
        yield
        return
    total = sum(file.size for file in wanted)
    stop = threading.Event()

    def arrived() -> int:
        whole = (folder / file.name for file in wanted)
        # Not with glob, which fails if a folder is removed meanwhile.
        files = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
        partial = (path for path in files if path.suffix == ".incomplete")
        return sum(map(_size, (*whole, *partial)))

    def watch() -> None:
        while not stop.wait(0.1):
            progress(min(arrived(), total), total)

    progress(min(arrived(), total), total)
    watcher = threading.Thread(target=watch, name="download-progress", daemon=True)
    watcher.start()
    try:
        yield
        stop.set()
        watcher.join()
        progress(total, total)
    finally:
        stop.set()
        watcher.join()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # not written yet, or just renamed
        return 0
