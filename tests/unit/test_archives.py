"""Unpacking untrusted archives: which files are written, and which archives are refused."""

import contextlib
import gzip
import io
import stat
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.errors import SourceError
from repertory.sources.archive import unpacking
from repertory.sources.archive.tar import MAX_RECORDS_SIZE, Tar
from repertory.sources.archive.unpacking import unpack
from repertory.sources.fetched import writing
from repertory.sources.fetched.writing import Writer
from tests.support.elsewhere import skills, tarred, zipped

OUTSIDE = ["../x", "a/../../x", "/etc/x", "a//x", "./../x", "a/./x", ".."]


def unpacked(data: bytes, into: Path) -> Writer:
    """Unpack an archive into a new folder."""
    into.mkdir()
    writer = Writer(into, "a.zip")
    unpack(data, writer)
    return writer


def files(folder: Path) -> set[str]:
    """The paths below a folder, except folders."""
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if not one.is_dir()}


def member(name: str, kind: bytes, **fields: object) -> tarfile.TarInfo:
    """A member of a tar archive without content."""
    info = tarfile.TarInfo(name)
    info.type = kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info


@pytest.mark.parametrize("make", [zipped, tarred], ids=["zip", "tar"])
def test_unpacked_files_are_private(make: object, tmp_path: Path) -> None:
    """Only their owner may read and write them, and they are not executable."""
    unpacked(make(skills("pdf", "docx")), tmp_path / "into")  # type: ignore[operator]
    assert files(tmp_path / "into") == {"skills/pdf/SKILL.md", "skills/docx/SKILL.md"}
    modes = {stat.S_IMODE(one.stat().st_mode) for one in (tmp_path / "into").rglob("*.md")}
    assert modes == {0o600}


@pytest.mark.parametrize("place", OUTSIDE)
@pytest.mark.parametrize("make", [zipped, tarred], ids=["zip", "tar"])
def test_an_archive_with_a_path_that_leads_out_is_refused(
    make: object, place: str, tmp_path: Path
) -> None:
    """Such a path is an attack; nothing is written outside the folder."""
    data = make({"ok.md": "x", place: "x"})  # type: ignore[operator]
    with pytest.raises(SourceError, match="would lie elsewhere"):
        unpacked(data, tmp_path / "into")
    assert files(tmp_path) <= {"into/ok.md"}


def test_links_and_devices_of_a_tar_archive_are_left_out(tmp_path: Path) -> None:
    """A file below the name of a link is not written through the link."""
    data = tarred(
        {"d/x.md": "through", "ok.md": "x"},
        member("d", tarfile.SYMTYPE, linkname=str(tmp_path)),
        member("hard", tarfile.LNKTYPE, linkname="/etc/passwd"),
        member("pipe", tarfile.FIFOTYPE),
        member("null", tarfile.CHRTYPE, devmajor=1, devminor=3),
    )
    writer = unpacked(data, tmp_path / "into")
    assert files(tmp_path / "into") == {"d/x.md", "ok.md"}
    assert writer.left_out == {"links": 2, "devices": 2}


def test_links_of_a_zip_archive_are_left_out(tmp_path: Path) -> None:
    """A ZIP archive stores links and devices as files with a special mode."""
    data = io.BytesIO(zipped({"ok.md": "x"}))
    with zipfile.ZipFile(data, "a") as archive:
        for name, mode in {"link": stat.S_IFLNK, "pipe": stat.S_IFIFO}.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (mode | 0o777) << 16
            archive.writestr(info, "/etc/passwd")
    writer = unpacked(data.getvalue(), tmp_path / "into")
    assert files(tmp_path / "into") == {"ok.md"}
    assert writer.left_out == {"links": 1, "devices": 1}


@pytest.mark.parametrize("make", [zipped, tarred], ids=["zip", "tar"])
def test_sizes_and_numbers_of_files_are_bounded(
    make: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large file is left out. An archive of too many files or bytes is refused."""
    monkeypatch.setattr(writing, "MAX_FILE_SIZE", 1_000)
    monkeypatch.setattr(writing, "MAX_TOTAL_SIZE", 3_000)
    monkeypatch.setattr(writing, "MAX_FILES", 5)
    few = make({"large.md": "x" * 1_001, "ok.md": "x" * 1_000})  # type: ignore[operator]
    assert unpacked(few, tmp_path / "few").left_out.total() == 1
    assert files(tmp_path / "few") == {"ok.md"}
    for name, number, size in (("much", 4, 1_000), ("many", 6, 1)):
        data = make({f"{n}.md": "x" * size for n in range(number)})  # type: ignore[operator]
        with pytest.raises(SourceError, match="name a folder of it"):
            unpacked(data, tmp_path / name)


def test_a_file_larger_than_declared_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library may not compare the unpacked size with the declared one."""
    monkeypatch.setattr(writing, "MAX_FILE_SIZE", 1_000)
    writer = Writer(tmp_path, "a.zip")
    assert writer.takes("a.md", 1)
    with pytest.raises(SourceError, match="more bytes than it says"):
        writer.write("a.md", [b"x" * 600] * 2)


def test_the_number_of_entries_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that are left out count, because reading a long list takes time."""
    monkeypatch.setattr(writing, "MAX_ENTRIES", 3)
    data = zipped({f".git/{number}": "x" for number in range(4)})
    with pytest.raises(SourceError, match="lists more than 3 files"):
        unpacked(data, tmp_path / "into")


def test_a_zip_bomb_that_lies_about_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unpacked size counts, not the declared one."""
    monkeypatch.setattr(writing, "MAX_FILE_SIZE", 10_000)
    data = bytearray(zipped({"a.md": b"\0" * 5_000_000}))
    assert len(data) < 10_000
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.find(signature) + offset
        data[at : at + 4] = struct.pack("<L", 100)
    with pytest.raises(SourceError):
        unpacked(bytes(data), tmp_path / "into")
    assert sum(one.stat().st_size for one in (tmp_path / "into").rglob("*.md")) <= 10_000


def test_a_tar_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that are left out count towards the limit, too."""
    monkeypatch.setattr(unpacking, "MAX_UNPACKED_SIZE", 1_000_000)
    data = tarred({"large.md": b"\0" * (writing.MAX_FILE_SIZE + 1), "ok.md": "x"})
    with pytest.raises(SourceError, match="would have more than"):
        unpacked(data, tmp_path / "into")


def _header(name: str, size: bytes, kind: bytes = b"0") -> bytes:
    """The header of a member of a tar archive, which declares any size."""
    header = bytearray(member(name, kind).tobuf(tarfile.USTAR_FORMAT))
    header[124:136] = size.ljust(12, b"\0")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


@pytest.mark.parametrize(
    "content",
    [
        _header("a", b"\x80" + b"\x7f" * 11),
        _header("a", b"77777777777"),
        _header("a", b"\xff" * 12),
        _header("a", b"00003641100", b"x") + b"1" * 1_000_000,
        _header("a", b"00000000012", b"x") + b"9 size=-9\n".ljust(512, b"\0") + _header("b", b"0"),
        _header("a", b"00000000012", b"x") + b"0 path=ab\n".ljust(512, b"\0") + _header("b", b"0"),
        _header("a", b"7777777777", b"L") + b"a" * 1_000_000,
        _header("a", b"00004000001", b"L") + b"a" * (MAX_RECORDS_SIZE + 512) + _header("b", b"0"),
        _header("a", b"1_0") + b"a" * 512,
        _header("a", b"00000000001", b"S") + b"a" * 512,
        _header("a", b"0").replace(b"a", b"b", 1),
        _header("a", b"0")[:300],
    ],
)
def test_an_archive_with_an_invalid_header_is_refused(content: bytes, tmp_path: Path) -> None:
    """Sizes beyond the end and overlong numbers are included; following them would take hours."""
    with pytest.raises(SourceError, match=r"is damaged|cannot be unpacked"):
        unpacked(gzip.compress(content), tmp_path / "into")
    assert files(tmp_path / "into") == set()


def test_a_zip64_archive_is_refused(tmp_path: Path) -> None:
    """Its list of files may have any length, and the library reads all of it."""
    data = io.BytesIO(zipped(skills("pdf")))
    with zipfile.ZipFile(data, "a") as archive:
        archive.comment = b"PK\x06\x07"
    with pytest.raises(SourceError, match="lists too many files"):
        unpacked(data.getvalue(), tmp_path / "into")


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_tar_format_is_read(form: int, tmp_path: Path) -> None:
    """Long names, other scripts, folders and executable files are read in each format."""
    names = ["a.md", f"{'b' * 90}/{'c' * 60}.md", "d/\u65e5\u672c.md"]
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", format=form) as archive:
        archive.addfile(member("d", tarfile.DIRTYPE))
        for name in names:
            content = name.encode() * 100
            archive.addfile(member(name, tarfile.REGTYPE, size=len(content)), io.BytesIO(content))
        archive.addfile(member("run.sh", tarfile.REGTYPE, mode=0o755))
    into = tmp_path / "into"
    unpacked(data.getvalue(), into)
    assert files(into) == {*names, "run.sh"}
    assert all((into / name).read_bytes() == name.encode() * 100 for name in names)
    assert [one.name for one in into.rglob("*.*") if one.stat().st_mode & 0o100] == ["run.sh"]


NAMES = st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
FORMATS = st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])


@given(
    contents=st.dictionaries(PATHS, st.binary(max_size=2_000), max_size=4),
    form=FORMATS,
    is_executable=st.booleans(),
)
def test_a_tar_is_read_as_by_the_standard_library(
    contents: dict[str, bytes], form: int, *, is_executable: bool
) -> None:
    """Names, modes and bytes are equal. Names that are too long for a format are skipped."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=form) as archive:
        for name, content in contents.items():
            mode = 0o755 if is_executable else 0o644
            info = member(name, tarfile.REGTYPE, size=len(content), mode=mode)
            with contextlib.suppress(ValueError):
                archive.addfile(info, io.BytesIO(content))
    with tarfile.open(fileobj=io.BytesIO(data.getvalue())) as archive:
        expected = [
            (one.name, file.read(), bool(one.mode & 0o100))
            for one in archive
            if (file := archive.extractfile(one))
        ]
    read = Tar(io.BytesIO(data.getvalue()))
    found = [(one.place, b"".join(read.content()), one.is_executable) for one in read]
    assert found == expected


def test_a_zip_archive_with_a_huge_list_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its list of files alone could fill the memory."""
    monkeypatch.setattr(unpacking, "MAX_LIST_SIZE", 100)
    with pytest.raises(SourceError, match="lists too many files"):
        unpacked(zipped({f"{number}.md": "x" for number in range(9)}), tmp_path / "into")


def test_unusual_entries_are_left_out(tmp_path: Path) -> None:
    """Names that are duplicate or invalid on other systems are counted; Git folders are not."""
    data = tarred(
        {".git/config": "x", "a/.GIT/hooks/x": "x", "a\\b.md": "x", "a\x1b.md": "x", "ok.md": "x"},
        member("ok.md", tarfile.REGTYPE),
        member("ok.md/below.md", tarfile.REGTYPE),
    )
    writer = unpacked(data, tmp_path / "into")
    assert files(tmp_path / "into") == {"ok.md"}
    assert writer.left_out == {
        "files whose names are invalid on other systems": 2,
        "files with duplicate names": 2,
    }


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>404</html>",
        zipped({"a": "x"})[:-30],
        b"PK\x03\x04" + b"\0" * 50,
        tarred({"a": "x" * 9_000})[:-40],
        b"\x1f\x8b" + b"\xff" * 50,
    ],
    ids=["nothing", "a page", "half a zip", "zeros", "half a tar", "no gzip"],
)
def test_a_file_that_is_no_archive_is_refused(data: bytes, tmp_path: Path) -> None:
    """The error is one sentence that begins with the archive's name."""
    with pytest.raises(SourceError, match=r"^a\.zip (is|cannot)"):
        unpacked(data, tmp_path / "into")


def test_a_damaged_archive_raises_only_a_source_error(tmp_path: Path) -> None:
    """A truncated or changed archive may still be unpacked, but raises no other exception."""
    for number, made in enumerate((zipped(skills("pdf")), tarred(skills("pdf")))):
        for at in range(0, len(made), 7):
            changed = bytearray(made)
            changed[at] ^= 0xFF
            for kind, data in (("cut", made[:at]), ("changed", bytes(changed))):
                try:
                    unpacked(data, tmp_path / f"{number}-{at}-{kind}")
                except SourceError:
                    continue


def test_zip_archives_of_other_systems_are_unpacked(tmp_path: Path) -> None:
    """Backslashes separate folders and must not lead out; files that macOS adds are left out."""
    names = {"skills\\pdf\\SKILL.md": "a", "skills\\": "", "__MACOSX/skills/._pdf": "b"}
    unpacked(zipped(names), tmp_path / "into")
    assert files(tmp_path / "into") == {"skills/pdf/SKILL.md"}
    with pytest.raises(SourceError):
        unpacked(zipped({"..\\x": "a"}), tmp_path / "other")
