"""Opens ONNX Runtime sessions fast.

Opening a session spends most of its time optimising the graph and unpacking its weights. The result
is cached in ONNX Runtime's own format, and mapped into memory instead of read. For
all-MiniLM-L6-v2, this takes 0.05 s instead of 0.3 s, and 140 MB of memory instead of 260 MB.
"""

import contextlib
import logging
import os
import platform
import threading
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import onnxruntime as ort  # type: ignore[import-untyped]  # ships no types

from repertory.embedding.digests import state_name
from repertory.embedding.model_files import data_of, source_of
from repertory.errors import DeviceUnavailableError, ModelError
from repertory.system.files import PRIVATE, make_private, write_atomically
from repertory.system.memory import drop_pages, return_memory_early

_CPU = "CPUExecutionProvider"
_GPUS = {"cuda": "CUDAExecutionProvider", "rocm": "MIGraphXExecutionProvider"}

_log = logging.getLogger(__name__)


class Session:
    """An open graph. Thread-safe.

    Args:
        graph: ONNX Runtime's session.
        mapped: The file that its weights are mapped from, if any.
    """

    def __init__(self, graph: ort.InferenceSession, mapped: Path | None = None) -> None:
        self.graph = graph
        self._mapped = mapped

    def run(self, output: str, feed: dict[str, Any], *, is_last: bool) -> Any:  # noqa: ANN401 - untyped
        """Run the graph on one batch.

        Args:
            output: The name of the output.
            feed: The inputs by name.
            is_last: Whether to free the memory of this run and of earlier ones.
        """
        options = None
        if is_last:
            options = ort.RunOptions()
            options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        return self.graph.run([output], feed, options)[0]

    def free_memory(self) -> None:
        """Free the memory of mapped weights; they are read again when needed."""
        if self._mapped:
            drop_pages(self._mapped)


# The open sessions by graph, device and cache, so that engines of one model share a session.
_open: "WeakValueDictionary[tuple[str, str, Path], Session]" = WeakValueDictionary()
_opening = threading.Lock()


def gpus() -> list[str]:
    """The kinds of GPU that this build of ONNX Runtime supports, whether present or not."""
    available = ort.get_available_providers()
    return [device for device, provider in _GPUS.items() if provider in available]


def open_session(graph: Path, cache: Path, device: str) -> Session:
    """Open a session for a graph, or reuse the one already open in this process.

    Args:
        graph: An ``.onnx`` file.
        cache: A folder for optimised graphs; need not be writable.
        device: ``cpu``, or one of ``gpus()``.

    Raises:
        ModelError: The graph cannot be loaded, or the device cannot be used.
    """
    # Otherwise memory freed by one batch is not reused for a batch of another size.
    return_memory_early()
    try:
        key = (_state(graph), device, cache)
    except OSError as exc:
        raise ModelError(f"The weights {graph} cannot be read: {exc}.") from exc
    with _opening:
        session = _open.get(key)
        if session is None:
            session = _open[key] = _opened(graph, key[0], cache, device)
        return session


def _state(graph: Path) -> str:
    """A name for the current state of a graph and of its external weights, if any."""
    data = data_of(graph)
    return state_name(graph) + (f"-{state_name(data)}" if data.is_file() else "")


def _opened(graph: Path, name: str, cache: Path, device: str) -> Session:
    if device != "cpu":
        session = _load(graph, _options(), _GPUS[device])
        if _GPUS[device] not in session.get_providers():
            raise DeviceUnavailableError(
                f"ONNX Runtime could not start {device}; check its driver, or use the CPU."
            )
        return Session(session)
    optimised = cache / f"{name}-{platform.machine()}-{ort.__version__}.ort"
    if os.path.isfile(optimised):  # noqa: PTH113 - no error if access is denied
        with contextlib.suppress(ModelError):  # a damaged file is replaced
            return _open_mapped(optimised)
    session = _optimise(graph, optimised)
    if not os.path.isfile(optimised):  # noqa: PTH113 - as above
        return Session(session)
    del session  # one that maps the optimised graph takes a third of its memory
    return _open_mapped(optimised)


def _open_mapped(optimised: Path) -> Session:
    session = Session(_load(optimised, _mapped()), optimised)
    # Loading copies most weights into another layout, so their pages can be freed.
    session.free_memory()
    return session


def _options() -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1  # the engine runs one batch on each core instead
    options.log_severity_level = 3  # errors only, no warnings
    return options


def _mapped() -> ort.SessionOptions:
    options = _options()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.use_memory_mapped_ort_model", "1")
    options.add_session_config_entry("session.use_ort_model_bytes_for_initializers", "1")
    return options


def _optimise(graph: Path, optimised: Path) -> ort.InferenceSession:
    """Open a graph and cache its optimised form."""
    options = _options()
    # The next level is specific to the processor, and gains nothing for these models.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    partial = optimised.with_name(f"{optimised.name}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        make_private(optimised.parent)
        partial.touch(mode=PRIVATE)
    except OSError:
        return _load(graph, options)
    options.optimized_model_filepath = str(partial)
    options.add_session_config_entry("session.save_model_format", "ORT")
    try:
        session = _load(graph, options)
        # Without this, a crash could leave a file of zeros, which would load without an error.
        with partial.open("rb+") as written:
            os.fsync(written.fileno())
        partial.replace(optimised)
        write_atomically(source_of(optimised), os.fsencode(graph.resolve()))
        for other in optimised.parent.glob(f"{optimised.name.partition('-')[0]}-*"):
            if other != optimised:  # from older weights or versions, or from a killed process
                other.unlink()
    except (ModelError, OSError) as exc:
        # The disk may be full, or the graph too large for the format.
        _log.debug("optimised_graph_not_kept", extra={"graph": str(graph), "error": str(exc)})
        return _load(graph, _options())
    else:
        return session
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _load(file: Path, options: ort.SessionOptions, provider: str = _CPU) -> ort.InferenceSession:
    try:
        return ort.InferenceSession(str(file), options, providers=[provider])
    except Exception as exc:  # ONNX Runtime's errors share no narrower base
        raise ModelError(f"ONNX Runtime cannot load {file}: {str(exc)[:300]}.") from exc
