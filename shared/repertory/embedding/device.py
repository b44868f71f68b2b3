"""Detects the available devices, without importing torch on machines without a GPU."""

import logging
import math
import os
import platform
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec

from repertory.embedding.interrupts import delayed_interrupts
from repertory.embedding.model_files import Format

# Each exists if a driver is installed: NVIDIA; NVIDIA or AMD under WSL; AMD; NVIDIA on Windows.
_DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd", "C:/Windows/System32/nvcuda.dll")

_PROCESS, _CGROUPS = Path("/proc/self"), Path("/sys/fs/cgroup")

_log = logging.getLogger(__name__)


class Placement(msgspec.Struct, frozen=True):
    """An engine and the device to run it on."""

    form: Format
    device: str


CPU = Placement(Format.ONNX, "cpu")


def accelerators(*, thorough: bool) -> Iterator[Placement]:
    """The GPUs that an installed engine can use, best first.

    Args:
        thorough: Ask torch even if no driver was found. Importing torch takes seconds.
    """
    installed = find_spec("torch") and find_spec("sentence_transformers")
    if installed and (thorough or _has_driver()) and (device := _torch_device()):
        yield Placement(Format.TORCH, device)
    for device in _onnx_devices():
        yield Placement(Format.ONNX, device)


def cores() -> int:
    """The number of cores that this process may use, also with the limit of a container."""
    has_affinity = hasattr(os, "sched_getaffinity")
    available = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return min(available, _quota() or available)


def _quota() -> int:
    """The limit of this process's cgroup (version 2), rounded up; 0 if it has no limit.

    See ``cpu.max`` in the kernel's documentation. The limits of cgroups above are not read.
    """
    try:
        lines = (_PROCESS / "cgroup").read_text().splitlines()
        own = next(line.removeprefix("0::") for line in lines if line.startswith("0::"))
        most, period = (_CGROUPS / own.lstrip("/") / "cpu.max").read_text().split()
        return math.ceil(int(most) / int(period))
    except (OSError, StopIteration, ValueError, ZeroDivisionError):  # none, or "max"
        return 0


def _has_driver() -> bool:
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    return any(Path(path).exists() for path in _DRIVERS)


def _torch_device() -> str:
    """The GPU that torch can use; empty if there is no GPU or torch cannot be imported."""
    try:
        import torch  # noqa: PLC0415 - takes seconds
    # Catch everything: a library that torch needs may be missing or have the wrong version.
    except Exception as error:
        _log.warning("torch_unusable", extra={"error": str(error)})
        return ""
    if torch.cuda.is_available():
        return "rocm" if torch.version.hip else "cuda"
    return "mps" if torch.backends.mps.is_available() else ""


def _onnx_devices() -> list[str]:
    """The GPUs that ONNX Runtime supports; none if it cannot be imported."""
    try:
        with delayed_interrupts():
            from repertory.embedding.session import gpus  # noqa: PLC0415 - imports onnxruntime
    # Catch everything, as for torch.
    except Exception as error:
        _log.warning("onnxruntime_unusable", extra={"error": str(error)})
        return []
    return gpus()
