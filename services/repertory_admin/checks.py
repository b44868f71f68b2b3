"""The checks of `repertory doctor`, except those of data, sign-in and sources.

Each reports its findings, and the remedy for a bad one.
"""

import shutil
from collections.abc import Iterator
from datetime import date
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

import msgspec

from repertory.audit import Audit
from repertory.client import Client
from repertory.data_directory import MODELS
from repertory.embedding.device import accelerators
from repertory.embedding.load import load_engine
from repertory.embedding.model_files import Format
from repertory.embedding.weights import resolve
from repertory.errors import (
    ConfigurationError,
    ModelError,
    NothingIndexedError,
    RepertoryError,
    StoreError,
)
from repertory.files import make_directory, unwritable
from repertory.indexing import keyword_sync
from repertory.one_shot import Repertory
from repertory.search.answer import Mode
from repertory.search.calibration import Fitted, stored
from repertory.search.query import query_of
from repertory.settings import Settings
from repertory.text import counted
from repertory_admin.progress import Bars
from repertory_admin.text import short_path

PROBE_SIZE = 1 << 14  # bytes; an empty file can be written even to a full disk
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
    """Whether the data directory can be written, and has enough free space."""
    probe = data / ".doctor"
    try:
        make_directory(data)
        try:
            probe.write_bytes(bytes(PROBE_SIZE))
        finally:
            probe.unlink(missing_ok=True)
    except (StoreError, OSError) as error:
        why = unwritable(data, error) if isinstance(error, OSError) else error
        yield Finding(State.BAD, "data directory", str(why))
        return
    yield Finding(State.GOOD, "data directory", f"{short_path(str(data))} can be written")
    free = shutil.disk_usage(data).free
    if free > MIN_FREE_BYTES:
        yield Finding(State.GOOD, "free space", f"{free / 1e9:.1f} GB")
    else:
        need = f"less than the {MIN_FREE_BYTES / 1e9:.1f} GB that a model may need"
        text = f"{free / 1e9:.1f} GB, {need}: make room, or choose another --data-dir"
        yield Finding(State.BAD, "free space", text)


def audit(settings: Settings) -> Finding:
    """Whether the audit log can be written."""
    if settings.values.audit_off:
        return Finding(State.GOOD, "audit log", "off")
    file = Audit(settings, settings.data_dir).file
    place = short_path(str(file.path))
    if trouble := file.check():
        return Finding(State.BAD, "audit log", f"{place} cannot be written: {trouble}")
    return Finding(State.GOOD, "audit log", place)


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
    yield _confidence(stored(engine, data / MODELS))


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
    count = counted(stats.items, "item")
    place = f" in {stats.collection}" if stats.collection else ""
    items = f"{count}{place}" if stats.items or place else "no items yet"
    yield Finding(State.GOOD, "server", f"answers at {client.remote.url}: {items}")
    for why in dict.fromkeys([*stats.missing.values(), *stats.troubles]):
        yield Finding(State.BAD, "server", why)
    if stats.queue.failed:
        failed = counted(stats.queue.failed, "job")
        yield Finding(State.BAD, "queue", f"{failed} failed; see `repertory queue list`")
    if stats.watch and stats.watch.pending:
        items = counted(stats.watch.pending, "item")
        yield Finding(State.UNSURE, "queue", f"{items} not indexed yet")
    for name, why in (stats.watch.polling if stats.watch else {}).items():
        yield Finding(State.UNSURE, f"source {name}", f"scanned at intervals, because {why}")
    for one in stats.unused:
        vectors = counted(one.points, "vector")
        text = (
            f"{one.collection}: {vectors}, unused since {date.fromtimestamp(one.since)}; it is "
            "removed after REPERTORY_WATCH_KEEP_UNUSED days"
        )
        yield Finding(State.UNSURE, "unused index", text)


def redis(url: str) -> Iterator[Finding]:
    """Whether a team's Redis answers, and evicts no keys."""
    from repertory.coordination.redis_server import RedisServer  # noqa: PLC0415 - slow, optional

    try:
        policy = RedisServer(url).eviction_policy()
    except RepertoryError as error:
        yield Finding(State.BAD, "Redis", str(error))
        return
    if policy == "noeviction":
        yield Finding(State.GOOD, "Redis", "answers, and evicts nothing")
        return
    text = (
        f"its maxmemory-policy is {policy}: when its memory is full, it deletes waiting jobs, and "
        "saves are found late; set it to noeviction"
    )
    yield Finding(State.UNSURE, "Redis", text)


def index(repertory: Repertory) -> Iterator[Finding]:
    """Whether the store opens and the keyword snapshot loads."""
    try:
        stats = repertory.stats()
        answer = repertory.search(query_of(repertory.settings.values, "repertory"))
    except NothingIndexedError:
        yield Finding(State.UNSURE, "index", "nothing is indexed here yet; run `repertory index`")
        return
    except RepertoryError as error:
        yield Finding(State.BAD, "index", str(error))
        return
    if answer.mode is Mode.HYBRID:
        items, points = counted(answer.items, "item"), counted(stats.points or 0, "point")
        yield Finding(State.GOOD, "index", f"{items}, {points} in {stats.collection}")
    else:
        yield Finding(State.BAD, "index", answer.degraded)
    if keyword_sync.load(repertory.parts.coordination.snapshots, stats.collection):
        yield Finding(State.GOOD, "keyword index", "its snapshot can be loaded")
    else:
        text = "its snapshot is missing or damaged: `repertory index` builds it again"
        yield Finding(State.BAD, "keyword index", text)
