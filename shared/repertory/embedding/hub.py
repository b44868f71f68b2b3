"""Downloads weights from the hub: only the required files, checked against the hub's checksums.

``snapshot_download`` does not fit: it does not verify content, and cannot refuse a model after the
small files, before it downloads the weights. Runs as a separate process; see ``download``.
"""

import hashlib
import itertools
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from filelock import FileLock
from huggingface_hub import HfApi
from huggingface_hub.hf_api import RepoSibling
from huggingface_hub.utils.tqdm import disable_progress_bars

from repertory.embedding.description import check_architecture
from repertory.embedding.download import Report
from repertory.embedding.model_files import (
    NEEDED,
    WEIGHTS,
    Format,
    Manifest,
    manifest_file,
    manifest_in,
)
from repertory.errors import ModelError, WeightsUnavailableError
from repertory.system.files import PRIVATE, make_private, narrow, write_atomically
from repertory.system.progress import Download

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


def fetch(repository: str, form: Format, folder: Path, progress: Download) -> None:
    """Download a model into a folder of the cache, and write its manifest last.

    A complete file is not downloaded again, and an interrupted response is resumed.

    Args:
        repository: ``organisation/name``.
        form: The engine that the weights are for.
        folder: Created if missing.
        progress: Called with the bytes received so far and the total, from another thread.

    Raises:
        WeightsUnavailableError: The hub is unreachable, does not have the model, or sent a file
            with a wrong checksum.
        ModelError: No engine of this format can use the model.
    """
    endpoint = os.environ.get("HF_ENDPOINT") or None
    disable_progress_bars()
    with _translated(repository):
        api = HfApi(endpoint=endpoint)
        other = manifest_in(folder)  # both engines must use the same revision
        info = api.model_info(
            repository,
            revision=other.revision or None if other else None,
            files_metadata=True,
            timeout=CONNECT_TIMEOUT_S,
        )
        remote = {sibling.rfilename: sibling for sibling in info.siblings or []}
        small, large = _choose(repository, form, remote)
        make_private(folder)
    wanted = [*small, *large]
    # A second process waits for the lock, and then finds the files.
    lock = FileLock(folder / ".lock", mode=PRIVATE)
    with _translated(repository), lock, _reporting(folder, wanted, progress):
        for file in wanted:
            if file is large[0]:
                check_architecture(folder)
            name = file.rfilename
            api.hf_hub_download(
                repository,
                name,
                revision=info.sha,
                local_dir=folder,
                etag_timeout=CONNECT_TIMEOUT_S,
            )
            if not _intact(folder / name, file):
                (folder / name).unlink()
                raise WeightsUnavailableError(
                    f"{repository}: {name} is not what the hub lists (its checksum differs)"
                )
        manifest = Manifest(
            repository=repository,
            revision=info.sha or "",
            files={file.rfilename: file.size or 0 for file in wanted},
            content=_content(remote),
        )
        write_atomically(manifest_file(folder, form), msgspec.json.encode(manifest))
        shutil.rmtree(folder / ".cache", ignore_errors=True)  # the client's state for resuming
        narrow(folder)


def _choose(
    repository: str, form: Format, remote: dict[str, RepoSibling]
) -> tuple[list[RepoSibling], list[RepoSibling]]:
    """The small files that an engine requires, and the weights."""
    weights = next((name for name in WEIGHTS[form] if name in remote), None)
    missing = [name for name in NEEDED[form] if name not in remote]
    if weights is None or missing:
        raise ModelError(
            f"The model {repository} cannot be used: on the hub it has no "
            f"{missing[0] if missing else ' or '.join(WEIGHTS[form])}; choose another model."
        )
    small = dict.fromkeys([*NEEDED[form], *_OPTIONAL])
    large = (weights, f"{weights}_data")  # external weights, if a graph exceeds 2 GB
    return (
        [remote[name] for name in small if name in remote],
        [remote[name] for name in large if name in remote],
    )


def _content(remote: dict[str, RepoSibling]) -> str:
    """A digest of all files that affect vectors, for any engine."""
    weights = [name for names in WEIGHTS.values() for name in names]
    names = {*itertools.chain(*NEEDED.values()), *_OPTIONAL}
    names |= {*weights, *(f"{name}_data" for name in weights)}
    files = [(name, remote[name]) for name in sorted(names & remote.keys())]
    facts = [(name, file.lfs.sha256 if file.lfs else file.blob_id) for name, file in files]
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()


def _intact(local: Path, file: RepoSibling) -> bool:
    """Whether a file has the listed size and SHA-256, or git object id if it is not in LFS."""
    if local.stat().st_size != file.size:
        return False
    if file.lfs:
        with local.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == file.lfs.sha256
    content = local.read_bytes()
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
    return blob.hexdigest() == file.blob_id


@contextmanager
def _translated(repository: str) -> Iterator[None]:
    try:
        yield
    except ModelError:
        raise
    except Exception as exc:
        # The hub's library lets errors of its HTTP client through. Which client that is depends on
        # the library's version, so there is no narrower class.
        reason = (str(exc) or type(exc).__name__).strip().splitlines()[0]
        raise WeightsUnavailableError(f"{repository}: {reason[:300]}") from exc


@contextmanager
def _reporting(folder: Path, wanted: list[RepoSibling], progress: Download) -> Iterator[None]:
    """Report the bytes on disk ten times a second.

    The hub's client has two transfer methods with different progress; both write into the folder.
    """
    total = sum(file.size or 0 for file in wanted)
    stop = threading.Event()

    def report() -> None:
        whole = (folder / file.rfilename for file in wanted)
        # os.walk, because glob fails if a folder is removed meanwhile.
        files = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
        partial = (path for path in files if path.suffix == ".incomplete")
        progress(min(sum(map(_size, (*whole, *partial))), total), total)

    def watch() -> None:
        while not stop.wait(0.1):
            report()

    report()
    watcher = threading.Thread(target=watch, name="download-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()
    progress(total, total)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # not written yet, or just renamed
        return 0


def main(repository: str, form: str, folder: str) -> None:
    """Download a model, and print a ``Report`` per line."""

    def say(report: Report) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
        sys.stdout.buffer.flush()

    def progress(done: int, total: int) -> None:
        say(Report(done=done, total=total))

    try:
        fetch(repository, Format(form), Path(folder), progress)
    except ModelError as exc:
        is_refused = not isinstance(exc, WeightsUnavailableError)
        say(Report(error=str(exc), is_refused=is_refused))


if __name__ == "__main__":
    main(*sys.argv[1:])
