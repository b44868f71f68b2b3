"""Archives of backups that are damaged, foreign or hostile are refused before anything changes."""

import gc
import io
import json
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.backup import files, frames
from repertory.backup.archive import Archive, writing
from repertory.backup.create import create
from repertory.backup.restore import check, restore
from repertory.backup.work_folder import LOCK, PREFIX, work_folder
from repertory.compose import Parts
from repertory.errors import (
    RepertoryError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    UsageError,
)
from repertory.remote.running import announce, the_only_server
from repertory.settings import load
from tests.support.builders import write
from tests.support.points import direction, point

NAME = "repertory_0123456789abcdef_model-r3_g1"


def silent(*_: object) -> None:
    """Ignore progress."""


def parts(folder: Path) -> Parts:
    """An embedded index with its own data directory."""
    return Parts(load({"data_dir": str(folder / "data")}, folder, {}), folder)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A valid backup of two points and a file."""
    (tmp_path / "first").mkdir()
    old, path = parts(tmp_path / "first"), tmp_path / "backup.zip"
    with old.store.create(NAME, 4) as collection:
        collection.upsert([point("a"), point("a", direction(1, 2), section=0)])
    old.store.set_alias("repertory_0123456789abcdef", NAME)
    (old.settings.data_dir / "trusted.json").write_text("{}", "utf-8")
    create(old, path, silent, with_sign_ins=False, force=False)
    return path


def refusal(tmp_path: Path, path: Path) -> RepertoryError:
    """The error of a refused restore, which must leave no data directory."""
    new = tmp_path / "second"
    new.mkdir(exist_ok=True)
    with pytest.raises(RepertoryError) as caught, Archive(path) as found:
        check(parts(new), found, silent, force=True)
    assert [*new.iterdir()] == []
    return caught.value


def changed(path: Path, change: Callable[[dict[str, bytes], dict[str, Any]], object]) -> None:
    """Rewrite an archive with changed parts and a changed manifest."""
    with zipfile.ZipFile(path) as old:
        found = {info.filename: old.read(info) for info in old.infolist()}
    manifest = json.loads(found.pop("manifest.json"))
    change(found, manifest)
    with zipfile.ZipFile(path, "w") as new:
        for name, data in {**found, "manifest.json": json.dumps(manifest).encode()}.items():
            new.writestr(name, data)


def test_an_unchanged_archive_passes(archive: Path, tmp_path: Path) -> None:
    """The check that refuses changed archives accepts the original."""
    (tmp_path / "second").mkdir()
    with Archive(archive) as found:
        check(parts(tmp_path / "second"), found, silent, force=False)


@pytest.mark.parametrize("year", [1970, 2108])
def test_a_backup_is_made_at_any_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, year: int
) -> None:
    """The clock of a small machine may start in 1970, a year that ZIP cannot represent."""
    old, path = parts(tmp_path), tmp_path / "backup.zip"
    (old.settings.data_dir).mkdir()
    (old.settings.data_dir / "trusted.json").write_text("{}", "utf-8")
    monkeypatch.setattr(time, "localtime", lambda _: time.struct_time((year, *[1] * 8)))
    create(old, path, silent, with_sign_ins=False, force=False)
    with Archive(path) as found:
        check(parts(tmp_path / "second"), found, silent, force=True)


def test_an_index_is_replaced_only_with_force(archive: Path, tmp_path: Path) -> None:
    """The restored collection is the next generation; the current audit log stays."""
    old = parts(tmp_path / "first")
    with old.store.open(NAME) as collection:
        collection.upsert([point("b")])
    log = old.settings.data_dir / "audit" / "audit.jsonl"
    write(log, "kept\n")
    (old.settings.data_dir / "trusted.json").write_text("[]", "utf-8")
    with pytest.raises(UsageError, match="already"):
        create(old, archive, silent, with_sign_ins=False, force=False)
    with Archive(archive) as found:
        with pytest.raises(UsageError, match="--force"):
            check(old, found, silent, force=False)
        check(old, found, silent, force=True)
        restore(old, found, silent)
    restored = old.store.alias("repertory_0123456789abcdef") or ""
    assert restored == NAME.replace("_g1", "_g2")
    with old.store.open(restored) as collection:
        assert {one.item for one in collection.points()} == {"a"}
    assert log.read_text("utf-8") == "kept\n"
    assert (old.settings.data_dir / "trusted.json").read_text("utf-8") == "{}"


def test_a_data_directory_with_only_files_is_replaced_only_with_force(
    archive: Path, tmp_path: Path
) -> None:
    """Its trusted configurations, keys and approvals cannot be recreated."""
    new = parts(tmp_path / "second")
    write(new.settings.data_dir / "trusted.json", "{}")
    with Archive(archive) as found:
        with pytest.raises(UsageError, match=r"with trusted\.json; give --force"):
            check(new, found, silent, force=False)
        check(new, found, silent, force=True)


def test_a_restore_replaces_no_newer_generation(archive: Path, tmp_path: Path) -> None:
    """A rebuild since the backup has the next generation, so the restored one comes after it."""
    old, newer = parts(tmp_path / "first"), NAME.replace("_g1", "_g2")
    with old.store.create(newer, 4) as collection:
        collection.upsert([point("b")])
    with Archive(archive) as found:
        restore(old, found, silent)
    restored = NAME.replace("_g1", "_g3")
    assert old.store.aliases() == {"repertory_0123456789abcdef": restored}
    assert set(old.store.collections()) == {NAME, newer, restored}


def test_an_alias_of_an_empty_collection_is_not_restored(archive: Path, tmp_path: Path) -> None:
    """An empty collection is not restored, so the alias would have no collection."""
    old, new = parts(tmp_path / "first"), parts(tmp_path / "second")
    empty = NAME.replace("0123", "4567")
    old.store.create(empty, 4).close()
    old.store.set_alias("repertory_4567456789abcdef", empty)
    create(old, archive, silent, with_sign_ins=False, force=True)
    with Archive(archive) as found:
        assert found.manifest.collections[empty].count == 0
        check(new, found, silent, force=False)
        restore(new, found, silent)
    assert new.store.collections() == [NAME]
    assert new.store.aliases() == {"repertory_0123456789abcdef": NAME}


def test_a_restored_collection_inherits_nothing_of_an_earlier_one(
    archive: Path, tmp_path: Path
) -> None:
    """A snapshot and announcements of a dropped collection with its name describe other items."""
    new = parts(tmp_path / "second")
    snapshots, deltas = new.coordination.snapshots, new.coordination.deltas
    snapshots.save(NAME, b"older", {})
    deltas.announce(NAME, {"older": "1"})
    assert (snapshots.load(NAME) is None, deltas.length(NAME)) == (False, 1)
    with Archive(archive) as found:
        restore(new, found, silent)
    assert (snapshots.load(NAME), deltas.length(NAME)) == (None, 0)


def test_a_restore_needs_room_on_the_disk(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that has exactly the size of the parts free is large enough."""
    new = parts(tmp_path / "second")
    (tmp_path / "second").mkdir()
    with Archive(archive) as found:
        size = found.manifest.size
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Mock(free=size - 1))
        with pytest.raises(StoreError, match="MB free"):
            check(new, found, silent, force=False)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Mock(free=size))
        check(new, found, silent, force=False)


def test_a_restore_is_refused_if_a_server_started_after_the_check(
    archive: Path, tmp_path: Path
) -> None:
    """The user may take a while to confirm."""
    new = parts(tmp_path / "second")
    new.workspace.directory.mkdir()
    with Archive(archive) as found:
        check(new, found, silent, force=True)
        with the_only_server(new.settings, new.workspace.directory):
            announce(new.settings, new.workspace.directory, "http://127.0.0.1:1", "token")
            with pytest.raises(StoreBusyError, match="stop it first"):
                restore(new, found, silent)
    assert new.store.collections() == []


def test_the_audit_log_is_restored_after_a_failed_restore(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failed restore adds a line to the log, which must not count as an existing log."""
    old, new = parts(tmp_path / "first"), parts(tmp_path / "second")
    write(old.settings.data_dir / "audit" / "audit.jsonl", "newer\n")
    write(old.settings.data_dir / "audit" / "audit.jsonl.1", "older\n")
    create(old, archive, silent, with_sign_ins=False, force=True)
    log = new.settings.data_dir / "audit" / "audit.jsonl"
    with Archive(archive) as found:
        with monkeypatch.context() as patch:
            patch.setattr(new.store, "create", Mock(side_effect=StoreError("full")))
            with pytest.raises(StoreError, match="full"):
                restore(new, found, silent)
        with log.open("a", encoding="utf-8") as file:
            file.write("failed\n")
        restore(new, found, silent)
    assert log.read_text("utf-8") == "newer\nfailed\n"
    assert log.with_name("audit.jsonl.1").read_text("utf-8") == "older\n"


def test_an_interrupted_restore_of_the_audit_log_is_completed(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current file is restored last, because it counts as an existing log."""
    old, new = parts(tmp_path / "first"), parts(tmp_path / "second")
    write(old.settings.data_dir / "audit" / "audit.jsonl", "newer\n")
    write(old.settings.data_dir / "audit" / "audit.jsonl.1", "older\n")
    create(old, archive, silent, with_sign_ins=False, force=True)
    with Archive(archive) as found:
        with monkeypatch.context() as patch:
            real, names = files.restore, ["the first"]

            def restore_one(data: Path, name: str, read: Callable[[int], bytes]) -> None:
                if not names:
                    raise StoreError("full")
                names.pop()
                real(data, name, read)

            patch.setattr(files, "restore", restore_one)
            with pytest.raises(StoreError, match="full"):
                restore(new, found, silent)
        restore(new, found, silent)
    audit = new.settings.data_dir / "audit"
    texts = {one.name: one.read_text("utf-8") for one in audit.iterdir()}
    assert texts == {"audit.jsonl": "newer\n", "audit.jsonl.1": "older\n"}


def test_a_changed_byte_in_any_part_is_noticed(archive: Path, tmp_path: Path) -> None:
    """A truncated archive is refused, too."""
    data = archive.read_bytes()
    with zipfile.ZipFile(archive) as found:
        listed = found.infolist()
    for one in listed:
        name, extra = struct.unpack_from("<2H", data, one.header_offset + 26)
        middle = one.header_offset + 30 + name + extra + one.compress_size // 2
        archive.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
        assert isinstance(refusal(tmp_path, archive), StoreCorruptError | UsageError)
    archive.write_bytes(data[: len(data) // 2])
    assert "not a backup" in str(refusal(tmp_path, archive))


@pytest.mark.parametrize(
    "name",
    [
        "../outside.json",
        "/etc/cron.d/job",
        "keys/../../outside.json",
        "keys/.hidden.json",
        "collections/../x",
        "servers/browser.secret",
        "models/x/model.onnx",
    ],
)
def test_a_part_with_an_unknown_name_is_refused(archive: Path, tmp_path: Path, name: str) -> None:
    """Only names of files that a backup has are accepted, and nothing is written."""

    def add(found: dict[str, bytes], manifest: dict[str, Any]) -> None:
        found[name] = found["trusted.json"]
        manifest["parts"][name] = manifest["parts"]["trusted.json"]

    changed(archive, add)
    assert "a part that no backup has" in str(refusal(tmp_path, archive))


CHANGES: dict[str, Callable[[dict[str, bytes], dict[str, Any]], object]] = {
    "its parts differ from its manifest": lambda found, _: found.update(extra=b""),
    "the size of trusted.json differs": lambda found, _: found.update({"trusted.json": b"{ }"}),
    "the content of trusted.json differs": lambda found, _: found.update({"trusted.json": b"[]"}),
    "of a newer release": lambda _, manifest: manifest.update(format=2),
    "not a backup of Repertory": lambda _, manifest: manifest.pop("parts"),
    "cannot name a collection": lambda _, manifest: manifest["aliases"].update({"../x": NAME}),
    "has 2 entries": lambda _, manifest: manifest["collections"][NAME].update(count=3),
    "vectors of other lengths": lambda _, manifest: manifest["collections"][NAME].update(
        dimension=5
    ),
    "a part is missing": lambda found, manifest: (
        name := manifest["collections"][NAME]["part"],
        found.pop(name),
        manifest["parts"].pop(name),
    ),
    "is of a newer release (": lambda _, manifest: manifest["collections"].update(
        {NAME.replace("-r3_", "-r999_"): manifest["collections"].pop(NAME)}
    ),
    "is a backup of a team": lambda _, manifest: manifest.update(is_team=True),
    "a part that no backup has": lambda _, manifest: manifest.update(
        is_team=True, namespace="another"
    ),
}


@pytest.mark.parametrize("message", CHANGES)
def test_an_archive_that_contradicts_its_manifest_is_refused(
    archive: Path, tmp_path: Path, message: str
) -> None:
    """The error says what is wrong."""
    changed(archive, CHANGES[message])
    assert message in str(refusal(tmp_path, archive))


def test_a_part_must_be_unambiguous_and_plain(archive: Path, tmp_path: Path) -> None:
    """Two parts have the same name, or an unusual compression may need any amount of memory."""
    data = archive.read_bytes()
    with zipfile.ZipFile(archive, "a") as found, pytest.warns(UserWarning, match="Duplicate name"):
        found.writestr("trusted.json", "{}")
    assert "its parts differ from its manifest" in str(refusal(tmp_path, archive))
    archive.write_bytes(data)
    with zipfile.ZipFile(archive) as old:
        parts = {info.filename: old.read(info) for info in old.infolist()}
    with zipfile.ZipFile(archive, "w") as new:
        for name, content in parts.items():
            kind = zipfile.ZIP_LZMA if name == "trusted.json" else zipfile.ZIP_STORED
            new.writestr(name, content, kind)
    assert isinstance(refusal(tmp_path, archive), StoreCorruptError)


def test_other_files_are_refused_as_backups(tmp_path: Path) -> None:
    """A text, folder, pipe, missing file, overlong name, or other archive is a usage error."""
    text, other = tmp_path / "text.zip", tmp_path / "other.zip"
    text.write_bytes(b"PK\x05\x06")
    with zipfile.ZipFile(other, "w") as found:
        found.writestr("manifest.json", "[" * 100_000)
    os.mkfifo(tmp_path / "pipe")
    missing = [tmp_path / name for name in ("missing", "x" * 300)]
    for path in (text, other, tmp_path, *missing, tmp_path / "pipe"):
        assert isinstance(refusal(tmp_path, path), UsageError)


def test_a_huge_manifest_is_not_read(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be decompressed into memory."""
    with zipfile.ZipFile(archive) as found:
        size = found.getinfo("manifest.json").file_size
    monkeypatch.setattr("repertory.backup.archive.MAX_MANIFEST", size - 1)
    assert "not a backup" in str(refusal(tmp_path, archive))
    monkeypatch.setattr("repertory.backup.archive.MAX_MANIFEST", size)
    Archive(archive).__exit__()


@pytest.mark.parametrize("most", [1 << 20, 10])
def test_the_list_of_parts_of_an_archive_over_four_gigabytes_is_read(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Its size is in another place (ZIP64), and is limited, too."""
    data = archive.read_bytes()
    end = data.rindex(b"PK\x05\x06")
    count, size, start = struct.unpack_from("<H2L", data, end + 10)
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, end, 1)
    unknown = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, *[0xFFFFFFFF] * 2, 0)
    archive.write_bytes(data[:end] + record + locator + unknown)
    monkeypatch.setattr("repertory.backup.archive.MAX_LIST", most)
    if most == 10:
        assert "not a backup" in str(refusal(tmp_path, archive))
    else:
        with Archive(archive) as found:
            found.verify(silent)


def test_a_huge_list_of_parts_is_not_read(archive: Path, tmp_path: Path) -> None:
    """The library would read the whole list of names into memory."""
    data = bytearray(archive.read_bytes())
    data[-10:-6] = (1 << 31).to_bytes(4, "little")
    archive.write_bytes(data)
    assert "not a backup" in str(refusal(tmp_path, archive))


@given(st.binary(max_size=200))
def test_random_bytes_as_frames_raise_only_a_store_error(data: bytes) -> None:
    """No declared length is trusted."""
    for reader in (frames.points, frames.vectors):
        with pytest.raises(StoreError) if not _is_empty(data) else _nothing():
            for _ in reader(io.BytesIO(data).read, "it"):
                pass


def test_points_are_restored_from_frames() -> None:
    """All fields and vectors are equal; a vector with NaN is refused."""
    wanted = [point("a", tags=("x",)), point("a", direction(3, 1), section=2)]
    data = b"".join(frames.of_points(wanted))
    found = list(frames.points(io.BytesIO(data).read, "it"))
    assert [one.id for one in found] == [one.id for one in wanted]
    assert [one.record for one in found] == [one.record for one in wanted]
    np.testing.assert_array_equal(found[1].vector, wanted[1].vector)
    broken = b"".join(frames.of_points([point("a", np.full(4, np.nan, np.float32))]))
    with pytest.raises(StoreCorruptError, match="not finite"):
        list(frames.points(io.BytesIO(broken).read, "it"))


def test_frames_with_invalid_points_are_refused() -> None:
    """Wrong ids, mixed lengths of vectors, huge entries and trailing bytes are damage."""
    one, short = point("a"), point("b", np.ones(3, np.float32))
    end = b"".join(frames.of_points([one]))
    for data, message in (
        (b"".join(frames.of_points([msgspec.structs.replace(one, item="b")])), "not its item's"),
        (b"".join(frames.of_points([msgspec.structs.replace(one, section=-1)])), "not its item's"),
        (b"".join(frames.of_points([msgspec.structs.replace(one, section=1 << 40)])), "not its"),
        (b"".join(frames.of_points([one, short])), "a vector of 3 numbers"),
        (b"\xff" * 4 + end, "an entry of 4,294,967,295 bytes"),
        (end + b"x", "more after the end"),
    ):
        with pytest.raises(StoreCorruptError, match=message):
            list(frames.points(io.BytesIO(data).read, "it"))


def test_frames_with_invalid_vectors_are_refused() -> None:
    """The vectors of a cache have one length, which is limited."""
    key, ones = bytes(32), np.ones(frames.MAX_DIMENSION + 1, np.float32)
    for stored, number in (([ones[:4], ones[:3]], "3"), ([ones], "65,537"), ([ones[:0]], "0")):
        data = b"".join(frames.of_vectors((key, vector) for vector in stored))
        with pytest.raises(StoreCorruptError, match=f"a vector of {number} numbers"):
            list(frames.vectors(io.BytesIO(data).read, "it"))


def test_the_log_of_a_replaced_database_is_removed(tmp_path: Path) -> None:
    """SQLite would apply it to the restored database."""
    for name in ("vectors.sqlite", "vectors.sqlite-wal", "vectors.sqlite-shm"):
        write(tmp_path / name, "old")
    files.restore(tmp_path, "vectors.sqlite", io.BytesIO(b"new").read)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"new"]


def test_links_are_not_backed_up(tmp_path: Path) -> None:
    """The target is not a file of Repertory."""
    write(tmp_path / "keys" / "a.json", "[]")
    (tmp_path / "keys" / "b.json").symlink_to("a.json")
    assert files.names(tmp_path, with_sign_ins=False) == ["keys/a.json"]


def test_only_plain_names_are_files_of_a_backup() -> None:
    """Nested paths, names that begin with a dot, and backslashes are refused."""
    known = ("keys/0123.json", "audit/audit.jsonl", "audit/audit.jsonl.3", "vectors.sqlite")
    assert all(map(files.is_known, known))
    assert not any(map(files.is_known, ("keys", "keys/a/b.json", "keys/..json", "a\\b.json")))


def _is_empty(data: bytes) -> bool:
    return data == bytes(4)


class _nothing:  # noqa: N801 - a context like ``raises``
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def test_a_backup_replaces_only_a_regular_file(archive: Path, tmp_path: Path) -> None:
    """Links, pipes and folders stay, even with force."""
    link, pipe, folder = (tmp_path / name for name in ("link.zip", "pipe.zip", "folder.zip"))
    link.symlink_to(archive)
    os.mkfifo(pipe)
    folder.mkdir()
    before = archive.read_bytes()
    old = parts(tmp_path / "first")
    for path in (link, pipe, folder):
        with pytest.raises(UsageError, match=f"{path.name} is a folder, a link or a device"):
            create(old, path, silent, with_sign_ins=False, force=True)
    assert (link.is_symlink(), pipe.is_fifo(), folder.is_dir()) == (True, True, True)
    assert archive.read_bytes() == before
    for missing in (tmp_path / "nowhere" / "a.zip", archive / "a.zip"):
        with pytest.raises(UsageError, match="There is no folder"):
            create(old, missing, silent, with_sign_ins=False, force=True)
    create(old, archive, silent, with_sign_ins=False, force=True)


def test_damaged_databases_stop_no_backup(archive: Path, tmp_path: Path) -> None:
    """Each damaged database is reported; everything else is in the backup."""
    old = parts(tmp_path / "first")
    data = old.settings.data_dir
    write(data / "vectors.sqlite", "no database " * 100)
    write(data / "reviews" / "a.sqlite", "no database " * 100)
    whole = data / "reviews" / "b.sqlite"
    with closing(sqlite3.connect(whole)) as connection:
        connection.execute("CREATE TABLE decided (item)")
    made, left_out = create(old, archive, silent, with_sign_ins=False, force=True)
    assert {*made.parts} == {f"collections/{NAME}", "reviews/b.sqlite", "trusted.json"}
    review, cache = left_out
    assert str(data / "vectors.sqlite") in cache
    assert str(data / "reviews" / "a.sqlite") in review
    with Archive(archive) as found:
        found.verify(silent)


def test_files_removed_during_a_backup_do_not_stop_it(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`clean` or `connect --undo` may remove files; a missing index in use is an error."""
    old = parts(tmp_path / "first")
    data, unused = old.settings.data_dir, NAME.replace("_g1", "_g2")
    old.store.create(unused, 4).close()
    write(data / "connected" / "a.json", "{}")
    write(data / "connected" / "b.json", "{}")
    of_points = frames.of_points

    def of_first(*given: Any) -> Iterator[bytes]:  # noqa: ANN401 - passed on
        yield from of_points(*given)
        old.store.drop(unused)

    def undo(*_: object) -> None:
        (data / "connected" / "b.json").unlink(missing_ok=True)

    monkeypatch.setattr(frames, "of_points", of_first)
    made, _ = create(old, archive, undo, with_sign_ins=False, force=True)
    assert {*made.parts} == {f"collections/{NAME}", "connected/a.json", "trusted.json"}
    with Archive(archive) as found:
        check(parts(tmp_path / "second"), found, silent, force=False)
    old.store.create(unused, 4).close()
    old.store.set_alias("repertory_fedcba9876543210", unused)
    with pytest.raises(StoreError, match=f"{unused} was replaced during the backup; try again"):
        create(old, archive, silent, with_sign_ins=False, force=True)


def test_copies_of_databases_are_made_beside_the_backup(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data directory's disk may be full or read-only. The copies are removed afterwards."""
    old = parts(tmp_path / "first")
    with closing(sqlite3.connect(old.settings.data_dir / "vectors.sqlite")) as connection:
        connection.execute("CREATE TABLE vectors (key)")
    places = []
    make = tempfile.mkdtemp

    def recorded(suffix: str | None, prefix: str | None, folder: str) -> str:
        places.append(Path(folder))
        return make(suffix, prefix, folder)

    monkeypatch.setattr(tempfile, "mkdtemp", recorded)
    create(old, archive, silent, with_sign_ins=False, force=True)
    assert places == [archive.parent]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.zip", "first"]


def test_a_database_that_stays_locked_ends_a_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite would wait forever for a process that was stopped while it wrote."""
    monkeypatch.setattr(files, "_BUSY_S", 0.0)
    monkeypatch.setattr(files, "_ATTEMPT_S", 0.0)
    (tmp_path / "reviews").mkdir()
    with closing(sqlite3.connect(tmp_path / "reviews" / "a.sqlite")) as connection:
        connection.execute("CREATE TABLE items (id)")
        connection.execute("BEGIN EXCLUSIVE")
        with (
            pytest.raises(StoreError, match="another process writes it"),
            files.readable(tmp_path, "reviews/a.sqlite", tmp_path),
        ):
            pass
        connection.execute("COMMIT")
        with files.readable(tmp_path, "reviews/a.sqlite", tmp_path) as path:
            assert path.read_bytes().startswith(b"SQLite")


def test_a_backup_opens_no_folder_of_another_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock may be a link, and some versions of the lock library would empty the target."""
    place = tmp_path / f"{PREFIX}other"
    place.mkdir()
    os.utime(place, (0, 0))
    monkeypatch.setattr(os, "getuid", lambda: place.stat().st_uid + 1)
    with work_folder(tmp_path):
        pass
    assert [*place.iterdir()] == []


def test_a_backup_removes_the_files_of_a_killed_backup(archive: Path, tmp_path: Path) -> None:
    """The folder of a running backup, and a folder with a similar name, stay."""
    old = parts(tmp_path / "first")
    kill = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from repertory.backup.archive import writing
        with writing(Path(sys.argv[1])) as writer:
            (writer.place / "copy").write_text("of a database")
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    subprocess.run([sys.executable, "-c", kill, archive], check=False)
    (left,) = tmp_path.glob(f"{PREFIX}*")
    assert {path.name for path in left.iterdir()} == {"archive", "copy", LOCK}
    os.utime(left, (0, 0))
    others = tmp_path / ".backup-2026"
    others.mkdir()
    os.utime(others, (0, 0))
    with work_folder(tmp_path) as runs:
        os.utime(runs, (0, 0))
        create(old, archive, silent, with_sign_ins=False, force=True)
        found = {path.name for path in tmp_path.iterdir()}
    assert found == {"backup.zip", "first", others.name, runs.name}


def test_an_unfinished_archive_raises_only_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive is closed before its file, and no part of it stays."""
    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)

    def chunks() -> Iterator[bytes]:
        yield b"a"
        raise StoreError("It cannot be read.")

    with pytest.raises(StoreError, match="It cannot be read"), writing(tmp_path / "a.zip") as one:
        one.add("part", chunks())
    del one
    gc.collect()
    assert (said, [*tmp_path.iterdir()]) == ([], [])
