"""Which engine is loaded onto which device."""

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
from repertory.embedding.folder import Format
from repertory.embedding.load import load_engine
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
    """A request for a GPU does not silently get the CPU."""
    pretend(monkeypatch)
    with pytest.raises(ModelError, match="no GPU"):
        load_engine(folder, "gpu", tmp_path)


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_the_cpu_is_taken_and_logged_when_there_is_no_gpu(
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


def test_a_gpu_that_does_not_start_is_an_error_for_gpu_and_the_cpu_for_auto(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver without a card must not keep a machine from searching."""
    pretend(monkeypatch, Placement(Format.ONNX, "cuda"))
    assert load_engine(folder, "auto", tmp_path).device == "cpu"
    with pytest.raises(ModelError):
        load_engine(folder, "gpu", tmp_path)


@pytest.mark.parametrize("is_cached", [True, False])
def test_a_gpu_takes_the_place_of_no_model_that_the_cpu_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_cached: bool
) -> None:
    """Queries are embedded on the CPU: with another model they would be answered by words alone."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pretend(monkeypatch, Placement(Format.TORCH, "cuda"))
    monkeypatch.setattr(load, "_torch_engine", lambda: Unrun)
    monkeypatch.setattr(load, "_onnx_engine", lambda: lambda weights, *_: Unrun(weights, "cpu"))
    if is_cached:  # for the CPU alone
        write_cached(tmp_path, BGE_SMALL.id)
    texts = load_engine(None, "auto", tmp_path)
    queries = load_engine(None, "auto", tmp_path, queries_only=True)
    assert texts.model == queries.model
    assert texts.model.id == (BGE_SMALL if is_cached else ENCODER).id
    assert texts.device == ("cpu" if is_cached else "cuda")


def test_auto_looks_for_no_gpu_when_only_queries_are_embedded(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One query is answered on the CPU before torch is imported."""

    def accelerators(**_: bool) -> Iterator[Placement]:
        raise AssertionError("no GPU is needed")

    monkeypatch.setattr(load, "accelerators", accelerators)
    assert load_engine(folder, "auto", tmp_path, queries_only=True).device == "cpu"


def test_a_torch_that_cannot_be_imported_is_none(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one whose libraries are missing: the CPU embeds then, and ``gpu`` says why not."""
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
    """Such as one whose library the system refuses: then a search goes on with words alone."""
    monkeypatch.setattr(devices, "find_spec", lambda _: None)
    monkeypatch.delitem(sys.modules, "repertory.embedding.onnx", raising=False)
    for module in ("onnxruntime", "repertory.embedding.session"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModelError, match="ONNX Runtime cannot be imported"):
        load_engine(folder, device, tmp_path)


@pytest.mark.parametrize("name", ["onnx/model.onnx", "tokenizer.json", "config.json"])
def test_a_damaged_file_of_the_cache_names_the_folder_to_remove(tmp_path: Path, name: str) -> None:
    """It has its size; a file in a folder of the user's own is not downloaded again."""
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


def test_ctrl_c_counts_also_while_onnx_runtime_is_imported(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its import swallows the exception, and the command went on; its handler stays the same."""

    class Swallowing(ModuleType):
        """A module whose import swallows a Ctrl-C."""

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
