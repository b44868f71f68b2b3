"""Loads an engine for a given model and device."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from repertory.data_directory import MODELS
from repertory.embedding.device import CPU, Placement, accelerators
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.interrupts import delayed_interrupts
from repertory.embedding.model_files import Format
from repertory.embedding.weights import Origin, WeightFiles, naming, resolve
from repertory.errors import ConfigurationError, DeviceUnavailableError, ModelError
from repertory.system.progress import Download

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
        model_name: A name from the table of models, a folder, a repository on the hub, or None for
            the default.
        device: ``cpu``; ``gpu`` for CUDA, Metal or ROCm, or an error without one; ``auto`` for a
            GPU if there is one.
        data_dir: The directory that keeps models.
        cache: The folder for digests and optimised graphs; None for ``models`` in ``data_dir``.
        queries_only: Whether nothing will be indexed. ``auto`` then means the CPU, which answers a
            query faster than torch can be imported.
        progress: Called during a download with the bytes received so far and the total.
        warn: Called with a message if another model replaces the default.

    Raises:
        ConfigurationError: The device setting is unknown.
        ModelError: The model is unavailable or unusable.
        DeviceUnavailableError: ``gpu`` was requested without one.
    """
    if device not in DEVICES:
        raise ConfigurationError(
            f"The device is {device!r}; it must be one of {', '.join(DEVICES)}."
        )
    failure: ModelError | None = None
    cache = cache or data_dir / MODELS

    def find(form: Format) -> WeightFiles:
        found = resolve(model_name, form, data_dir, progress, cache / "digests")
        # Queries are embedded on the CPU, and vectors of different models cannot be compared.
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
    """Raise DeviceUnavailableError if the device is ``gpu`` and there is no GPU."""
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
    # Import torch before any download, so that a failed import costs no download.
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
        with delayed_interrupts():
            from repertory.embedding.onnx import OnnxEngine  # noqa: PLC0415 - imports onnxruntime
    # Catch everything: the system may refuse to load its library.
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
    # Catch everything: its dependencies may be missing or broken.
    except Exception as error:
        raise ModelError(
            f"sentence-transformers cannot be imported: {error}; install repertory[torch] again, "
            "or set the device to cpu."
        ) from error
    return SentenceTransformerEngine
