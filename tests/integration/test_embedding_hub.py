"""Downloading a model from a hub server, and starting when the hub is unreachable."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from repertory.embedding import download as downloads
from repertory.embedding.download import download as fetched
from repertory.embedding.model_files import Format
from repertory.embedding.models import BGE_SMALL, ENCODER
from repertory.embedding.onnx import OnnxEngine
from repertory.embedding.weights import Origin, WeightFiles, resolve
from repertory.errors import ModelError, WeightsUnavailableError
from tests.support.hub_server import REVISION, HubServer
from tests.support.model_folders import write_model

ONNX = "onnx/model.onnx"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A hub that serves bge-small-en-v1.5 and some files that no engine requires."""
    folder = write_model(tmp_path / "served", pooling="cls_token")
    (folder / "onnx" / "model_quantized.onnx").write_bytes(b"not wanted")
    (folder / "pytorch_model.bin").write_bytes(b"not wanted")
    server = HubServer(BGE_SMALL.id, folder)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    yield server
    server.close()


def download(tmp_path: Path, name: str = BGE_SMALL.id) -> WeightFiles:
    """Resolve a model in this test's data directory."""
    return resolve(name, Format.ONNX, tmp_path / "data")


def test_a_model_is_downloaded_once_and_then_cached(hub: HubServer, tmp_path: Path) -> None:
    """Only the required files are requested, and the second time nothing is."""
    found = download(tmp_path)
    assert (found.model.id, found.origin) == (BGE_SMALL.id, Origin.HUB)
    assert OnnxEngine(found, tmp_path / "cache").embed_query("w1").shape == (384,)
    fetched = {line.rpartition("/resolve/")[2] for line in hub.requests if "GET /X" in line}
    assert {name.partition("/")[2] for name in fetched} == {
        "1_Pooling/config.json",
        "config.json",
        "tokenizer.json",
        ONNX,
    }
    hub.requests.clear()
    assert download(tmp_path).origin is Origin.CACHE
    assert hub.requests == []


@pytest.mark.parametrize("name", ["team/encoder", BGE_SMALL.id])
def test_changed_weights_in_a_repository_get_their_own_collection(
    hub: HubServer, tmp_path: Path, name: str
) -> None:
    """Machines that downloaded different weights do not mix their vectors; a README is ignored."""
    hub.repository = name
    before = download(tmp_path / "one", name).model
    assert download(tmp_path / "one", name).model == before  # from the cache
    hub.files["README.md"] = b"says nothing about vectors"
    assert download(tmp_path / "two", name).model == before
    hub.files[ONNX] += b"\0"
    after = download(tmp_path / "three", name).model
    assert (before.id, after.id) == (name, name)
    assert len({before.slug, after.slug, BGE_SMALL.slug}) == 3


def test_the_files_of_two_engines_are_of_one_revision(hub: HubServer, tmp_path: Path) -> None:
    """The ONNX and the torch engine therefore have equal vectors and share a collection."""
    hub.repository = "team/encoder"
    hub.files |= {"model.safetensors": b"weights", "modules.json": b"[]"}
    first = download(tmp_path, "team/encoder").model
    hub.requests.clear()
    second = resolve("team/encoder", Format.TORCH, tmp_path / "data")
    assert (second.model, second.origin) == (first, Origin.HUB)
    assert f"GET /api/models/team/encoder/revision/{REVISION}" in hub.requests
    assert resolve("team/encoder", Format.TORCH, tmp_path / "data").model == first


def test_progress_goes_from_nothing_to_everything(hub: HubServer, tmp_path: Path) -> None:
    """The bytes so far never exceed the total, and reach it at the end."""
    hub.pause = 0.3
    seen: list[tuple[int, int]] = []
    resolve(BGE_SMALL.id, Format.ONNX, tmp_path, lambda done, total: seen.append((done, total)))
    total = sum(
        len(hub.files[name])
        for name in ("config.json", "tokenizer.json", "1_Pooling/config.json", ONNX)
    )
    assert seen[0] == (0, total)
    assert seen[-1] == (total, total)
    assert all(0 <= done <= total for done, total in seen)
    assert any(0 < done < total for done, total in seen)


def test_an_aborted_response_is_resumed(hub: HubServer, tmp_path: Path) -> None:
    """The rest is requested, and the file equals the hub's file."""
    hub.cut_once.add(ONNX)
    assert download(tmp_path).file.read_bytes() == hub.files[ONNX]
    assert not hub.cut_once


@pytest.mark.parametrize("name", [ONNX, "tokenizer.json"])
def test_a_file_with_another_checksum_is_refused(hub: HubServer, tmp_path: Path, name: str) -> None:
    """The file is deleted, and the next attempt downloads it again."""
    hub.lie_about.add(name)
    with pytest.raises(WeightsUnavailableError, match=f"{name} is not what the hub lists"):
        download(tmp_path)
    assert not (tmp_path / "data" / "models" / "Xenova--bge-small-en-v1.5" / name).exists()
    hub.lie_about.clear()
    assert download(tmp_path).file.read_bytes() == hub.files[ONNX]


def test_an_interrupted_download_is_not_taken_for_complete(hub: HubServer, tmp_path: Path) -> None:
    """The next attempt keeps the complete files and downloads the rest."""
    hub.lie_about.add(ONNX)
    with pytest.raises(WeightsUnavailableError):
        download(tmp_path)
    hub.lie_about.clear()
    hub.requests.clear()
    assert download(tmp_path).origin is Origin.HUB
    assert not [line for line in hub.requests if "GET" in line and "tokenizer.json" in line]


@pytest.mark.usefixtures("hub")
def test_a_model_that_the_hub_does_not_have_is_an_error(tmp_path: Path) -> None:
    """The message names the repository, and says that the cache lacks the model too."""
    with pytest.raises(WeightsUnavailableError, match=r"unknown/nothing .*404") as error:
        download(tmp_path, "unknown/nothing")
    assert "not in the cache" in str(error.value)
    assert str(error.value).count("unknown/nothing") == 1


def test_a_hub_that_refuses_connections_is_an_error(hub: HubServer, tmp_path: Path) -> None:
    """The message says that the hub failed, and what to do."""
    hub.close()
    with pytest.raises(
        WeightsUnavailableError, match=r"hub did not provide its files: .*repertory\[offline\]"
    ):
        download(tmp_path)


def test_an_interruption_ends_the_download(hub: HubServer, tmp_path: Path) -> None:
    """The downloading process ends, too, and the next attempt succeeds."""
    hub.pause = 0.3
    before = {*psutil.Process().children()}  # left by other tests

    def interrupt(done: int, _: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        resolve(BGE_SMALL.id, Format.ONNX, tmp_path / "data", interrupt)
    left = {*psutil.Process().children()} - before
    assert not [one for one in left if one.status() != "zombie"]
    hub.pause = 0
    assert download(tmp_path).origin is Origin.HUB


def test_downloads_end_with_their_process(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub is not noted as unavailable, so the next process asks it again."""
    monkeypatch.setattr(downloads, "_ending", threading.Event())
    hub.pause = 600

    def end(done: int, _: int) -> None:
        if done:
            downloads.end()

    for _ in range(2):
        with pytest.raises(ModelError, match="is not downloaded: this process ends") as caught:
            resolve(None, Format.ONNX, tmp_path / "data", end)
        assert not isinstance(caught.value, WeightsUnavailableError)
    assert not list((tmp_path / "data" / "models").glob("*.unavailable"))


def test_a_download_that_dies_is_an_error(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with an unreachable hub, a package provides the weights, with a notice."""
    assert hub
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(WeightsUnavailableError, match=r"ended early \(exit status 1\)"):
        download(tmp_path)
    found = resolve(None, Format.ONNX, tmp_path)
    assert found.origin is Origin.PACKAGE
    assert "ended early" in found.notice


@pytest.mark.usefixtures("hub")
def test_a_data_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """The error is the same as for any other reason why weights are unavailable."""
    (tmp_path / "data").write_text("a file where the folder should be")
    with pytest.raises(WeightsUnavailableError, match="Not a directory"):
        download(tmp_path)


def test_a_packaged_model_replaces_the_default_one_while_the_hub_fails(
    hub: HubServer, tmp_path: Path
) -> None:
    """A notice says so, and the second attempt does not ask the hub again."""
    hub.lie_about.add(ONNX)
    for _ in range(2):
        found = resolve(None, Format.ONNX, tmp_path)
        assert (found.model, found.origin) == (ENCODER, Origin.PACKAGE)
        assert "is not what the hub lists" in found.notice
    assert sum("/api/models/" in line for line in hub.requests) == 1


def test_a_model_without_onnx_weights_is_refused_before_it_is_downloaded(
    hub: HubServer, tmp_path: Path
) -> None:
    """The hub's list of files is enough to refuse it."""
    del hub.files[ONNX]
    with pytest.raises(ModelError, match=r"has no onnx/model\.onnx or model\.onnx"):
        download(tmp_path)
    assert not [line for line in hub.requests if "/resolve/" in line]


def test_a_model_that_is_no_encoder_is_refused_before_its_weights_are_downloaded(
    hub: HubServer, tmp_path: Path
) -> None:
    """Its config.json is enough to refuse it."""
    hub.files["config.json"] = b'{"architectures": ["LlamaForCausalLM"]}'
    with pytest.raises(ModelError, match="decoder that generates text"):
        download(tmp_path)
    assert not [line for line in hub.requests if ONNX in line]


def test_a_query_imports_nothing_heavy(tmp_path: Path) -> None:
    """Embedding a query with local weights imports neither torch nor the hub's client."""
    script = (
        "import sys; from pathlib import Path\n"
        "from repertory.embedding.load import load_engine\n"
        "engine = load_engine(sys.argv[1], 'auto', Path(sys.argv[2]), queries_only=True)\n"
        "engine.embed_query('w1')\n"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'huggingface_hub'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    folder = write_model(tmp_path / "encoder")
    done = subprocess.run(
        [sys.executable, "-c", script, folder, tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.usefixtures("hub")
def test_a_download_that_cannot_start_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process may fail to start, or print unexpected lines."""

    def full(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", full)
        with pytest.raises(WeightsUnavailableError, match="temporarily unavailable"):
            fetched(BGE_SMALL.id, Format.ONNX, tmp_path, None)
    monkeypatch.setattr(sys, "executable", shutil.which("echo"))
    with pytest.raises(WeightsUnavailableError, match="the download failed"):
        fetched(BGE_SMALL.id, Format.ONNX, tmp_path, None)
