"""The checks of `repertory doctor`: each reports its findings, and the remedy for a bad one."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from datetime import date
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

import msgspec

from repertory.client import Client
from repertory.embedding.device import accelerators
from repertory.embedding.folder import Format
from repertory.embedding.load import load_engine
from repertory.embedding.weights import resolve
from repertory.errors import (
    ConfigurationError,
    ModelError,
    NothingIndexedError,
    RepertoryError,
    StoreError,
)
from repertory.files import make_directory
from repertory.indexing import keywords
from repertory.indexing.run import SCANNING
from repertory.indexing.scan import merge, scan_all
from repertory.one_shot import Repertory
from repertory.search.answer import Mode
from repertory.search.calibration import Fitted, stored
from repertory.search.query import query_of
from repertory.sources.source import Problem
from repertory_admin.progress import Bars
from repertory_admin.terminal import short_path
from repertory_admin.trust import untrusted

MIN_FREE_BYTES = 500e6  # a model and its optimised copy take half of that
_ORIGINS = {
    "path": "a folder",
    "cache": "the data directory",
    "hub": "the hub, just now",
    "package": "an installed package",
}


class State(StrEnum):
    """The result of a check."""

    GOOD = "good"
    UNSURE = "unsure"
    BAD = "bad"


class Finding(msgspec.Struct, frozen=True):
    """One line of the tick list."""

    state: State
    subject: str
    text: str


def data_directory(data: Path) -> Iterator[Finding]:
    """Whether the data directory can be written, and has room."""
    probe = data / ".doctor"
    try:
        make_directory(data)
        probe.write_bytes(b"")
        probe.unlink()
    except StoreError as error:
        yield Finding(State.BAD, "data directory", str(error))
        return
    except OSError as error:
        text = f"{data} cannot be written: {error.strerror}; choose another with --data-dir."
        yield Finding(State.BAD, "data directory", text)
        return
    yield Finding(State.GOOD, "data directory", f"{short_path(str(data))} can be written")
    free = shutil.disk_usage(data).free
    room = State.GOOD if free > MIN_FREE_BYTES else State.BAD
    yield Finding(room, "free space", f"{free / 1e9:.1f} GB")


def model(repertory: Repertory, bars: Bars) -> Iterator[Finding]:
    """Whether the model is available, its origin, and its device."""
    values, data = repertory.settings.values, repertory.settings.data_dir
    try:
        weights = resolve(values.model, Format.ONNX, data, bars.download)
        engine = load_engine(values.model, values.device, data, progress=bars.download)
    except (ModelError, ConfigurationError) as error:
        yield Finding(State.BAD, "model", str(error))
        return
    text = f"{weights.model.id}, from {_ORIGINS[weights.origin]}"
    yield Finding(State.GOOD, "model", text)
    if weights.notice:
        yield Finding(State.UNSURE, "model", weights.notice)
    gpus = [placement.device for placement in accelerators(thorough=False)]
    torch = "torch is installed" if find_spec("torch") else "torch is not installed"
    found = f"{engine.device} is used; GPUs: {', '.join(gpus) or 'none'}; {torch}"
    yield Finding(State.GOOD, "device", found)
    if engine.device != "cpu" and values.device != "gpu":  # queries are embedded on the CPU
        engine = load_engine(values.model, values.device, data, queries_only=True)
    yield _confidence(stored(engine, data / "models"))


def _confidence(fitted: Fitted | None) -> Finding:
    """Whether the model is calibrated, and how well."""
    if fitted is None:
        text = "not calibrated yet: the first search, or `repertory index`, does it in seconds"
        return Finding(State.UNSURE, "confidence", text)
    text = (
        f"calibrated on {date.fromtimestamp(fitted.at)} on {fitted.pairs} reference pairs: "
        f"error {fitted.error:.3f}, AUC {fitted.auc:.2f}"
    )
    return Finding(State.GOOD, "confidence", text)


def server(client: Client) -> Iterator[Finding]:
    """Whether a server answers, and which of its parts are unavailable."""
    try:
        stats = client.stats()
    except RepertoryError as error:
        yield Finding(State.BAD, "server", str(error))
        return
    items = f"{stats.items:,} items in {stats.collection}" if stats.collection else "no items yet"
    yield Finding(State.GOOD, "server", f"answers at {client.url}: {items}")
    for why in stats.missing.values():
        yield Finding(State.BAD, "server", why)


def index(repertory: Repertory) -> Iterator[Finding]:
    """Whether the store opens and the keyword snapshot loads."""
    try:
        stats = repertory.stats()
        answer = repertory.search(query_of(repertory.settings.values, "repertory"))
    except NothingIndexedError:
        yield Finding(State.UNSURE, "index", "nothing is indexed here yet: `repertory index`")
        return
    except RepertoryError as error:
        yield Finding(State.BAD, "index", str(error))
        return
    if answer.mode is Mode.HYBRID:
        text = f"{answer.items:,} items, {stats.points:,} points in {stats.collection}"
        yield Finding(State.GOOD, "index", text)
    else:
        yield Finding(State.BAD, "index", answer.degraded)
    if keywords.load(repertory.parts.coordination.snapshots, stats.collection):
        yield Finding(State.GOOD, "keyword index", "its snapshot can be loaded")
    else:
        text = "its snapshot is missing or damaged: `repertory index` builds it again"
        yield Finding(State.BAD, "keyword index", text)


def sources(
    repertory: Repertory, step: Callable[[str, int, int], None]
) -> tuple[list[Finding], list[Problem]]:
    """Whether every source can be read, and the problems of their items."""
    workspace = repertory.workspace
    try:
        catalogue = workspace.catalogue()
    except ConfigurationError as error:
        return [Finding(State.BAD, "configuration", str(error))], []
    built = catalogue.sources
    skipped = untrusted(workspace)
    findings = []
    done = itertools.count(1)
    scanned = scan_all(built, lambda: step(SCANNING, next(done), len(built)))
    for one in scanned:
        subject = f"source {one.source.name}"
        if one.scan is not None:
            text = f"{len(one.scan.items):,} items in {short_path(one.source.location)}"
            findings.append(Finding(State.GOOD, subject, text))
        else:
            is_skipped = not one.source.is_trusted and one.source.name in skipped.sources
            state = State.UNSURE if is_skipped else State.BAD
            findings.append(Finding(state, subject, one.error))
    if not built:
        findings.append(Finding(State.UNSURE, "sources", "no sources were found"))
    return findings, [*catalogue.problems, *merge(scanned, catalogue)[1]]
