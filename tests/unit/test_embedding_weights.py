"""The places of weights, their order, and the messages if no place has the weights."""

import hashlib
import os
import shutil
import time
from pathlib import Path

import msgspec
import pytest

from repertory.embedding import packages, weights
from repertory.embedding.digests import sha256
from repertory.embedding.model_files import Format, manifest_file
from repertory.embedding.models import BGE_SMALL, ENCODER, MINILM
from repertory.embedding.weights import RETRY_INTERVAL_S, Origin, resolve
from repertory.errors import ModelError, WeightsUnavailableError
from tests.support.builders import write
from tests.support.model_folders import write_cached, write_model


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevent requests to the hub."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that no package with weights is installed."""
    monkeypatch.setattr(packages, "PACKAGES", ())


def test_the_weights_of_a_path_are_used_in_place(tmp_path: Path) -> None:
    """Nothing is copied. The files identify the model, not the folder's name."""
    folder = write_model(tmp_path / "bge-small-en-v1.5")
    found = resolve(str(folder), Format.ONNX, tmp_path / "data")
    assert found.model.id.startswith("bge-small-en-v1.5@")
    assert (found.origin, found.notice) == (Origin.PATH, "")
    assert found.file == folder / "onnx" / "model.onnx"


def test_all_files_that_affect_vectors_identify_a_model(tmp_path: Path) -> None:
    """Tokenizer, graph, data beside the graph, and torch weights are all part of its identity."""
    folder = write_model(tmp_path / "encoder")
    found = [resolve(str(folder), Format.ONNX, tmp_path / "data").model]
    changes = {
        "tokenizer.json": (folder / "tokenizer.json").read_bytes() + b"\n",
        "onnx/model.onnx_data": b"weights",
        "model.safetensors": b"weights",
    }
    for name, content in changes.items():
        (folder / name).write_bytes(content)
        found.append(resolve(str(folder), Format.ONNX, tmp_path / "data").model)
    write_model(folder, seed=2)
    found.append(resolve(str(folder), Format.ONNX, tmp_path / "data").model)
    assert len({model.id for model in found}) == len({model.slug for model in found}) == 5


def test_a_file_with_the_time_and_size_of_another_is_read_again(tmp_path: Path) -> None:
    """An archive can restore both, so they do not prove that a file is unchanged."""
    file = tmp_path / "model.onnx"
    file.write_bytes(b"genuine")
    first, at = sha256(file, tmp_path / "digests"), file.stat().st_mtime_ns
    file.write_bytes(b"poison!")
    os.utime(file, ns=(at, at))
    assert sha256(file, tmp_path / "digests") != first


@pytest.mark.parametrize("form", list(Format))
def test_no_engine_loads_a_layer_from_a_folder(tmp_path: Path, form: Format) -> None:
    """Torch would import the layer's code from the folder."""
    folder = write_model(tmp_path / "m")
    (folder / "model.safetensors").write_bytes(b"")
    (folder / "modules.json").write_text('[{"type": "evil.Transformer", "path": ""}]')
    (folder / "evil.py").write_text("raise SystemExit('CODE RAN')")
    with pytest.raises(ModelError, match=r"type evil\.Transformer"):
        resolve(str(folder), form, tmp_path / "data")


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    """The message names the folder."""
    with pytest.raises(ModelError, match=r"no model folder .*nowhere"):
        resolve(str(tmp_path / "nowhere"), Format.ONNX, tmp_path)


@pytest.mark.parametrize("name", ["x" * 300, "/" + "x" * 300, "~no_user_of_this_name/m", "a\0b"])
def test_a_name_that_no_file_can_have_is_an_error(name: str, tmp_path: Path) -> None:
    """The error is the same as for an unknown model."""
    with pytest.raises(ModelError, match="There is no model '"):
        resolve(name, Format.ONNX, tmp_path)


def test_a_known_name_is_never_a_local_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project cannot replace a model with its own folder of the same name."""
    write_model(tmp_path / BGE_SMALL.id)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WeightsUnavailableError):
        resolve(BGE_SMALL.id, Format.ONNX, tmp_path / "data")


@pytest.mark.parametrize("name", [None, "BAAI/bge-small-en-v1.5", "bge-small-en-v1.5"])
def test_weights_in_the_cache_are_used_first(tmp_path: Path, name: str | None) -> None:
    """All names of a model lead to the same folder in the cache."""
    folder = write_cached(tmp_path, BGE_SMALL.id)
    found = resolve(name, Format.ONNX, tmp_path)
    assert (found.model.id, found.origin) == (BGE_SMALL.id, Origin.CACHE)
    assert found.tokenizer == folder / "tokenizer.json"


def test_an_unknown_model_in_the_cache_has_the_hub_s_name_as_id(tmp_path: Path) -> None:
    """Its other properties come from its files."""
    write_cached(tmp_path, "someone/encoder")
    model = resolve("someone/encoder", Format.ONNX, tmp_path).model
    assert (model.id, model.dimension) == ("someone/encoder", 384)


def test_revisions_downloaded_by_an_earlier_release_are_distinguished(tmp_path: Path) -> None:
    """The manifests of that release have no digests of the content."""
    slugs = []
    for revision in ("", "1" * 40, "2" * 40):
        folder = write_cached(tmp_path / revision, "someone/encoder")
        manifest = msgspec.json.decode(manifest_file(folder, Format.ONNX).read_bytes())
        manifest["revision"] = revision
        manifest_file(folder, Format.ONNX).write_bytes(msgspec.json.encode(manifest))
        slugs.append(resolve("someone/encoder", Format.ONNX, tmp_path / revision).model.slug)
    assert len({*slugs}) == 3


@pytest.mark.parametrize("damage", ["no manifest", "broken manifest", "cut file", "lost file"])
def test_an_incomplete_folder_in_the_cache_is_ignored(
    tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A complete folder has a manifest that matches its files."""
    without_packages(monkeypatch)
    folder = write_cached(tmp_path, BGE_SMALL.id)
    manifest, weights = manifest_file(folder, Format.ONNX), folder / "onnx" / "model.onnx"
    match damage:
        case "no manifest":
            manifest.unlink()
        case "broken manifest":
            manifest.write_bytes(b'{"files": []}')
        case "cut file":
            weights.write_bytes(weights.read_bytes()[:-1])
        case _:
            weights.unlink()
    with pytest.raises(WeightsUnavailableError, match="not in the cache"):
        resolve(None, Format.ONNX, tmp_path)


def test_a_package_replaces_the_default_model_with_a_notice(tmp_path: Path) -> None:
    """The notice names the default model, its replacement, and the reason."""
    found = resolve(None, Format.ONNX, tmp_path)
    assert (found.model, found.origin) == (ENCODER, Origin.PACKAGE)
    assert BGE_SMALL.id in found.notice
    assert ENCODER.id in found.notice
    assert "HF_HUB_OFFLINE" in found.notice


def test_no_package_replaces_a_requested_model(tmp_path: Path) -> None:
    """The error lists all places that were tried, and the next steps."""
    with pytest.raises(WeightsUnavailableError) as caught:
        resolve(BGE_SMALL.id, Format.ONNX, tmp_path)
    message = str(caught.value)
    assert message.startswith(f"The weights of {BGE_SMALL.id} are unavailable: not in the cache")
    assert "HF_HUB_OFFLINE" in message
    assert "repertory[offline]" in message


@pytest.mark.parametrize("form", list(Format))
def test_a_package_provides_its_own_model_without_a_notice(tmp_path: Path, form: Format) -> None:
    """A model requested by name is no replacement."""
    found = resolve("all-MiniLM-L6-v2", form, tmp_path)
    assert (found.model, found.origin) == (MINILM, Origin.PACKAGE)
    assert found.file.suffix == {Format.ONNX: ".onnx", Format.TORCH: ".safetensors"}[form]
    assert found.notice == ""


@pytest.mark.parametrize("name", ["repertory", "Repertory-Encoder"])
@pytest.mark.parametrize("form", list(Format))
def test_our_own_encoder_is_never_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, form: Format
) -> None:
    """It comes from its package; without the package, the error names the extra."""
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(weights, "download", None)  # calling it would be a TypeError
    found = resolve(name, form, tmp_path)
    assert (found.model, found.origin, found.notice) == (ENCODER, Origin.PACKAGE, "")
    without_packages(monkeypatch)
    with pytest.raises(
        WeightsUnavailableError, match=r"only in the package repertory-encoder.*offline"
    ):
        resolve(name, form, tmp_path)


def test_the_digests_of_our_encoder_match_its_list(tmp_path: Path) -> None:
    """The files are as published, and the graph for the CPU is small."""
    files = packages.find(ENCODER, Format.ONNX, tmp_path)
    assert files
    folder = files.weights.parent
    assert files.weights.stat().st_size <= 25_000_000
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_a_package_with_changed_weights_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights must have the pinned checksum."""
    other = msgspec.structs.replace(packages.PACKAGES[0], sha256="0" * 64)
    monkeypatch.setattr(packages, "PACKAGES", (other,))
    with pytest.raises(WeightsUnavailableError, match=r"repertory-encoder .* SHA-256 differs"):
        resolve(None, Format.ONNX, tmp_path)


def test_a_package_without_its_tokenizer_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the package that should contain it."""
    other = msgspec.structs.replace(packages.PACKAGES[0], tokenizer=("no_such_package", "x"))
    monkeypatch.setattr(packages, "PACKAGES", (other,))
    with pytest.raises(WeightsUnavailableError, match="missing from no_such_package; install"):
        resolve(None, Format.ONNX, tmp_path)


def test_the_hub_is_not_asked_again_soon_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is stored and repeated until the retry interval has passed."""
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    note = tmp_path / "models" / "Xenova--bge-small-en-v1.5.unavailable"
    write(note, "it was on fire")
    assert "it was on fire" in resolve(None, Format.ONNX, tmp_path).notice
    long_ago = time.time() - RETRY_INTERVAL_S - 1
    os.utime(note, (long_ago, long_ago))
    assert "it was on fire" not in resolve(None, Format.ONNX, tmp_path).notice


def test_a_requested_offline_mode_is_not_stored_as_a_failure(tmp_path: Path) -> None:
    """Back online, the hub is asked at once."""
    resolve(None, Format.ONNX, tmp_path)
    assert not list((tmp_path / "models").glob("*.unavailable"))


def test_a_digest_is_stored_until_its_file_changes(tmp_path: Path) -> None:
    """Without a writable folder, digests still work."""
    file, memory = tmp_path / "weights", tmp_path / "memory"
    file.write_bytes(b"one")
    first = sha256(file, memory)
    assert sha256(file, memory) == first
    assert len(list(memory.iterdir())) == 1
    file.write_bytes(b"other")
    assert sha256(file, memory) != first
    shutil.rmtree(memory)
    memory.write_text("a file where the folder should be")
    assert sha256(file, memory) != first
