"""Which engine is loaded, and on which device."""

import logging
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest

from repertory.embedding import device as devices
from repertory.embedding import load
from repertory.embedding.device import Placement
from repertory.embedding.load import load_engine
from repertory.embedding.model_files import Format
from repertory.embedding.models import BGE_SMALL, ENCODER
from repertory.errors import ConfigurationError, ModelError
from tests.support.model_folders import Unrun, write_cached, write_model


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A folder with a tiny model."""
    return str(write_model(tmp_path / "encoder"))


def pretend(monkeypatch: pytest.MonkeyPatch, *found: Placement) -> None:
    """Pretend that the machine has these GPUs."""
    monkeypatch.setattr(load, "accelerators", lambda **_: iter(found))


def test_an_unknown_device_is_refused(folder: str, tmp_path: Path) -> None:
    """The message lists the known devices."""
    with pytest.raises(ConfigurationError, match="is 'tpu'; it must be one of auto, cpu, gpu"):
        load_engine(folder, "tpu", tmp_path)


def test_gpu_fails_without_a_gpu(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request for a GPU does not silently fall back to the CPU."""
    pretend(monkeypatch)
    with pytest.raises(ModelError, match="no GPU"):
        load_engine(folder, "gpu", tmp_path)


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_the_cpu_is_used_and_logged_without_a_gpu(
    device: str,
    folder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The event has the requested and the actual device, at debug level."""
    pretend(monkeypatch)
    caplog.set_level(logging.DEBUG, "repertory.embedding.load")
    assert load_engine(folder, device, tmp_path).device == "cpu"
    (record,) = (r for r in caplog.records if r.message == "embedding_device_taken")
    assert record.levelno == logging.DEBUG
    assert vars(record)["asked"] == device
    assert (vars(record)["device"], vars(record)["engine"]) == ("cpu", "onnx")


def test_a_gpu_that_does_not_start_is_an_error_only_if_requested(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``auto``, a driver without a card must not prevent a search."""
    pretend(monkeypatch, Placement(Format.ONNX, "cuda"))
    assert load_engine(folder, "auto", tmp_path).device == "cpu"
    with pytest.raises(ModelError):
        load_engine(folder, "gpu", tmp_path)


@pytest.mark.parametrize("is_cached", [True, False])
def test_a_gpu_uses_the_same_model_as_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_cached: bool
) -> None:
    """Queries are embedded on the CPU, and their vectors must fit the vectors of the texts."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pretend(monkeypatch, Placement(Format.TORCH, "cuda"))
    monkeypatch.setattr(load, "_torch_engine", lambda: Unrun)
    monkeypatch.setattr(load, "_onnx_engine", lambda: lambda weights, *_: Unrun(weights, "cpu"))
    if is_cached:  # only in the format for the CPU
        write_cached(tmp_path, BGE_SMALL.id)
    texts = load_engine(None, "auto", tmp_path)
    queries = load_engine(None, "auto", tmp_path, queries_only=True)
    assert texts.model == queries.model
    assert texts.model.id == (BGE_SMALL if is_cached else ENCODER).id
    assert texts.device == ("cpu" if is_cached else "cuda")


def test_auto_looks_for_no_gpu_when_only_queries_are_embedded(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query is embedded on the CPU faster than torch can be imported."""

    def accelerators(**_: bool) -> Iterator[Placement]:
        raise AssertionError("no GPU is needed")

    monkeypatch.setattr(load, "accelerators", accelerators)
    assert load_engine(folder, "auto", tmp_path, queries_only=True).device == "cpu"


def test_a_torch_that_cannot_be_imported_is_not_used(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its libraries may be missing. The CPU is used instead, and ``gpu`` gives the reason."""
    monkeypatch.setattr(devices, "find_spec", lambda _: True)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert Format.TORCH not in {one.form for one in devices.accelerators(thorough=True)}
    pretend(monkeypatch, Placement(Format.TORCH, "cuda"))
    monkeypatch.setitem(sys.modules, "repertory.embedding.sentence_transformer", None)
    assert load_engine(folder, "auto", tmp_path).device == "cpu"
    with pytest.raises(ModelError, match="sentence-transformers cannot be imported"):
        load_engine(folder, "gpu", tmp_path)


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_an_onnx_runtime_that_cannot_be_imported_is_an_error(
    device: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may refuse its library. A search can then go on with words alone."""
    monkeypatch.setattr(devices, "find_spec", lambda _: None)
    monkeypatch.delitem(sys.modules, "repertory.embedding.onnx", raising=False)
    for module in ("onnxruntime", "repertory.embedding.session"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModelError, match="ONNX Runtime cannot be imported"):
        load_engine(folder, device, tmp_path)


@pytest.mark.parametrize("name", ["onnx/model.onnx", "tokenizer.json", "config.json"])
def test_a_damaged_file_of_the_cache_names_the_folder_to_remove(tmp_path: Path, name: str) -> None:
    """Its size is right. Files in the user's own folders are never downloaded again."""
    cached = write_cached(tmp_path, "team/encoder")
    own = write_model(tmp_path / "encoder")
    for folder in (cached, own):
        (folder / name).write_bytes(b"?" * (folder / name).stat().st_size)
    advice = re.escape(f"remove the folder {cached}: it is downloaded again.")
    with pytest.raises(ModelError, match=advice) as failed:
        load_engine("team/encoder", "cpu", tmp_path)
    assert name.rpartition("/")[2] in str(failed.value)
    with pytest.raises(ModelError) as failed:
        load_engine(str(own), "cpu", tmp_path)
    assert "downloaded" not in str(failed.value)


def test_ctrl_c_is_effective_while_onnx_runtime_is_imported(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import swallows the exception, so it is raised again. The signal handler stays."""

    class Swallowing(ModuleType):
        """A module that swallows a Ctrl-C during its import."""

        def __getattr__(self, name: str) -> object:
            with suppress(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
            raise ImportError

    name = "repertory.embedding.onnx"
    monkeypatch.setitem(sys.modules, name, Swallowing(name))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            load_engine(folder, "cpu", tmp_path)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
