"""The files of the audit log: bounded, with complete lines of several writers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from repertory import audit
from repertory.audit import FILE, Audit, AuditFile, outcome_of
from repertory.settings import load
from tests.support.at_once import answers_at_once
from tests.support.audits import read_lines

_WRITER = """
import sys
from pathlib import Path
from repertory.audit import AuditFile
folder, name, files = sys.argv[1:]
file = AuditFile(Path(folder), 2_000, int(files))
print("ready", flush=True)
sys.stdin.readline()
for number in range(500):
    file.add({"writer": name, "number": number, "filler": "x" * 100})
    if number % 3 == 0:
        file.flush()
print(file.flush(60))
"""


@pytest.mark.parametrize("files", [4, 200])
def test_writers_of_several_processes_keep_the_bound(tmp_path: Path, files: int) -> None:
    """Number and size of the files are bounded. With room for all, no line is lost or reordered."""
    writers = [[sys.executable, "-c", _WRITER, str(tmp_path), n, str(files)] for n in "abc"]
    assert answers_at_once(writers) == ["True\n"] * 3

    found = [file for file in tmp_path.iterdir() if file.suffix != ".lock"]
    assert len(found) <= files
    assert all(file.stat().st_size <= 2_000 for file in found)
    lines = read_lines(tmp_path)
    names = {line["writer"] for line in lines}
    assert names == {*"abc"} if files == 200 else names
    for name in names:
        numbers = [line["number"] for line in lines if line["writer"] == name]
        assert numbers == list(range(numbers[0] if files == 4 else 0, 500))


def test_the_end_of_a_process_loses_no_line(tmp_path: Path) -> None:
    """A process that does not wait for its lines writes them when it ends."""
    program = "import sys; from pathlib import Path; from repertory.audit import AuditFile"
    program += "; AuditFile(Path(sys.argv[1]), 1_000, 2).add({'number': 1})"
    subprocess.run([sys.executable, "-c", program, tmp_path], check=True)
    assert read_lines(tmp_path) == [{"number": 1}]


def test_one_file_starts_again_when_it_is_full(tmp_path: Path) -> None:
    """With a limit of one file, no older file is kept."""
    file = AuditFile(tmp_path, 100, 1)
    for number in range(10):
        file.add({"number": number, "filler": "x" * 50})
    assert file.flush()
    assert [line["number"] for line in read_lines(tmp_path)] == [9]


def test_a_file_is_filled_before_the_next_one_is_started(tmp_path: Path) -> None:
    """A line that is longer than a file is alone in its file; no file is empty."""
    file = AuditFile(tmp_path, 2 * len('{"a": 1}\n'), 9)
    for line in ({"filler": "x" * 100}, {"a": 1}, {"a": 2}, {"a": 3}):
        file.add(line)
    assert file.flush()
    files = sorted(one for one in tmp_path.iterdir() if one.suffix != ".lock")
    assert [one.name for one in files] == ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]
    assert [one.read_text("ascii").count("\n") for one in files] == [1, 2, 1]


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partial line is removed, and the next line has the number of lost lines."""
    file = AuditFile(tmp_path, 1_000, 2)
    file.add({"number": 0})
    assert file.flush()
    write = os.write

    def full(place: int, data: bytes) -> int:
        if len(data) < 5:
            raise OSError(28, "No space left on device")
        return write(place, data[:-4])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        for number in (1, 2):
            file.add({"number": number})
            assert not file.flush()
        assert file.trouble == "No space left on device"
    for number in (3, 4):
        file.add({"number": number})
        assert file.flush()
    numbers = [(line["number"], line.get("lost", 0)) for line in read_lines(tmp_path)]
    assert numbers == [(0, 0), (3, 2), (4, 0)]


def test_a_bounded_number_of_lines_waits_for_a_hanging_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Further lines are counted as lost."""
    monkeypatch.setattr(audit, "MAX_WAITING", 5)
    monkeypatch.setattr(audit, "LOCK_TIMEOUT_S", 60)
    holder = FileLock(tmp_path / f"{FILE}.lock")
    file = AuditFile(tmp_path, 10_000, 2)
    with holder:
        for number in range(20):
            file.add({"number": number})
    assert file.flush()
    file.add({"number": 20})
    assert file.flush()
    lines = read_lines(tmp_path)
    assert len(lines) + sum(line.get("lost", 0) for line in lines) == 21
    assert len(lines) < 21


def test_the_outcome_follows_from_the_status() -> None:
    """A request without an answer has failed."""
    found = [outcome_of(status) for status in (0, 200, 302, 399, 400, 499, 500)]
    assert found == ["failed", "ok", "ok", "ok", "refused", "refused", "failed"]


def test_a_line_is_bounded(tmp_path: Path) -> None:
    """Long names are cut, surplus names counted; a link in place of the file is not followed."""
    settings = load({"data_dir": str(tmp_path / "data")}, tmp_path, {})
    log = Audit(settings, tmp_path)
    log.record("read", "c" * 1_000, "http", outcome="ok", what=["x" * 1_000] * 150, status=200)
    assert log.file.flush()
    [line] = read_lines(tmp_path / "data" / "audit")
    assert (len(line["what"]), line["more"], len(line["caller"])) == (100, 50, 300)
    assert len(json.dumps(line)) < 40_000

    target = tmp_path / "target"
    target.write_text("mine")
    log.file.path.unlink()
    log.file.path.symlink_to(target)
    log.record("read", "me", "http", outcome="ok")
    assert not log.file.flush()
    assert target.read_text() == "mine"
