"""Loads an engine by the name of a model and a device."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from repertory.embedding.device import CPU, Placement, accelerators
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.folder import Format
from repertory.embedding.interrupts import held_back
from repertory.embedding.weights import Origin, WeightFiles, naming, resolve
from repertory.errors import ConfigurationError, DeviceUnavailableError, ModelError
from repertory.progress import Download

if TYPE_CHECKING:
    from repertory.embedding.onnx import OnnxEngine
    from repertory.embedding.sentence_transformer import SentenceTransformerEngine

DEVICES = ("auto", "cpu", "gpu")
NO_GPU = (
    "There is no GPU that an installed engine can use; install repertory[torch] and the GPU's "
    "driver, check that `python -c 'import torch'` works, or set the device to auto or cpu."
)

_log = logging.getLogger(__name__)


def load_engine(
    model_name: str | None,
    device: str,
    data_dir: Path,
    *,
    cache: Path | None = None,
    queries_only: bool = False,
    progress: Download | None = None,
    warn: Callable[[str], None] | None = None,
) -> EmbeddingEngine:
    """Load a model onto a device.

    Args:
        model_name: A name of the table, a folder, a repository of the hub, or None for the default.
        device: ``cpu``; ``gpu``: CUDA, Metal or ROCm, or an error; ``auto``: a GPU if there is one.
        data_dir: The directory that keeps models.
        cache: The folder for what is made of their files; None for ``models`` in that directory.
        queries_only: Nothing will be indexed. ``auto`` then means the CPU, which answers a query
            before torch is imported.
        progress: Called during a download with the bytes that have arrived and the total.
        warn: Called with a sentence if another model is used instead of the default.

    Raises:
        ConfigurationError: The device setting is unknown.
        ModelError: The model is unavailable or unusable.
        DeviceUnavailableError: ``gpu`` was requested without one.
    """
    if device not in DEVICES:
        raise ConfigurationError(f"The device {device!r} is none of {', '.join(DEVICES)}.")
    failure: ModelError | None = None
    cache = cache or data_dir / "models"

    def find(form: Format) -> WeightFiles:
        found = resolve(model_name, form, data_dir, progress, cache / "digests")
        # Queries are embedded on the CPU: vectors of two models cannot be compared.
        if device == "auto" and form is Format.TORCH and found.notice:
            other = find(Format.ONNX).model
            if other != found.model:
                raise ModelError(f"A GPU can use {found.model.id} alone, and the CPU {other.id}.")
        return found

    for placement in _placements(device, queries_only=queries_only):
        try:
            engine = _load(placement, find, cache, warn)
        except ModelError as exc:
            if placement == CPU:
                raise
            failure = exc
            _log.debug(
                "embedding_device_failed", extra={"device": placement.device, "error": str(exc)}
            )
            continue
        _log.debug(
            "embedding_device_taken",
            extra={"asked": device, "device": engine.device, "engine": placement.form.value},
        )
        return engine
    raise failure or DeviceUnavailableError(NO_GPU)


def check_device(device: str) -> None:
    """Check that there is a GPU if one is asked for; DeviceUnavailableError if not."""
    if device == "gpu" and next(accelerators(thorough=True), None) is None:
        raise DeviceUnavailableError(NO_GPU)


def _placements(device: str, *, queries_only: bool) -> Iterator[Placement]:
    if device == "gpu" or (device == "auto" and not queries_only):
        yield from accelerators(thorough=device == "gpu")
    if device != "gpu":
        yield CPU


def _load(
    placement: Placement,
    find: Callable[[Format], WeightFiles],
    cache: Path,
    warn: Callable[[str], None] | None,
) -> EmbeddingEngine:
    # Imported before anything is downloaded for it.
    from_torch = _torch_engine() if placement.form is Format.TORCH else None
    weights = find(placement.form)
    if weights.notice:
        _log.info("embedding_model_substituted", extra={"model": weights.model.id})
        if warn:
            warn(weights.notice)
    from_graph = None if from_torch else _onnx_engine()
    is_cached = weights.origin is Origin.CACHE
    with naming(weights.tokenizer.parent) if is_cached else contextlib.nullcontext():
        if from_torch:
            return from_torch(weights, placement.device)
        assert from_graph
        return from_graph(weights, cache / "optimised", placement.device)


def _onnx_engine() -> "type[OnnxEngine]":
    try:
        with held_back():
            from repertory.embedding.onnx import OnnxEngine  # noqa: PLC0415 - imports onnxruntime
    # A boundary, as for torch: the system may refuse its library.
    except Exception as error:
        raise ModelError(
            f"ONNX Runtime cannot be imported: {error}; install onnxruntime again, in a version "
            "for this system."
        ) from error
    return OnnxEngine


def _torch_engine() -> "type[SentenceTransformerEngine]":
    try:
        from repertory.embedding.sentence_transformer import (  # noqa: PLC0415 - imports torch
            SentenceTransformerEngine,
        )
    # A boundary, as for torch itself.
    except Exception as error:
        raise ModelError(
            f"sentence-transformers cannot be imported: {error}; install repertory[torch] again, "
            "or set the device to cpu."
        ) from error
    return SentenceTransformerEngine
