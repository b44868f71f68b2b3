"""Contract 2, ``Vector.VectorUpdate``, tested embedded and through a server.

Most docstrings quote the sentence of the contract that their test checks.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import repertory
from repertory.errors import UsageError
from repertory.functions.table import FUNCTIONS
from tests.support.query_service import MODEL
from tests.support.skill_files import (
    ADD,
    ADD_FILE,
    AREA,
    AREA_FILE,
    VOLUME,
    VOLUME_FILE,
    make_library,
    write,
)
from tests.support.skill_sessions import Library, open_library

# The program of another process: it asks the server, or opens the directory without one.
OTHER = """
import sys
import repertory

folder, data, model, url, function, *arguments = sys.argv[1:]
with repertory.connect(url) if url else repertory.open(
    folder, data_dir=data, model=model
) as session:
    for argument in arguments:
        print(getattr(session, function)(argument))
"""


@pytest.fixture(scope="module", params=["embedded", "server"])
def library(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Library]:
    """A sandbox with three skill files."""
    with open_library(tmp_path_factory.mktemp("library"), request.param) as library:
        yield library


def other(library: Library, function: str, *arguments: str) -> subprocess.Popen[str]:
    """Start another process that calls a function with each argument in turn."""
    data = str(library.folder.parent / "data")
    command = [sys.executable, "-c", OTHER, str(library.folder), data, MODEL, library.url]
    return subprocess.Popen(
        [*command, function, *arguments],
        env={**os.environ, "REPERTORY_DATA_DIR": data},  # the note of the server is there
        stdout=subprocess.PIPE,
        text=True,
    )


def printed(process: subprocess.Popen[str]) -> list[str]:
    """Wait for a process and return its output."""
    written, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return written.splitlines()


def paths(answer: str) -> list[str]:
    """The paths in a search's result."""
    return [match["path"] for match in json.loads(answer)]


def test_one_required_argument() -> None:
    """One required argument, `filepath` (string)."""
    function = FUNCTIONS["Vector.VectorUpdate"]
    parameters = function.definition()["function"]["parameters"]

    assert list(parameters["properties"]) == parameters["required"] == ["filepath"]
    assert parameters["properties"]["filepath"]["type"] == "string"
    assert parameters["additionalProperties"] is False
    assert function.writes


def test_ok_and_found(library: Library) -> None:
    """Returns the literal `OK`; what was indexed is found by contract 1 in the same process."""
    assert library.session.vector_update(AREA_FILE) == "OK"
    assert library.session.vector_update(ADD_FILE) == "OK"

    found = paths(library.session.search_skills("How do I add two numbers?"))
    assert ADD_FILE in found
    assert AREA_FILE not in found


@pytest.mark.parametrize("path", ["/etc/hostname", "..", "../secret.md", "library/../../secret.md"])
def test_paths_outside_the_sandbox(library: Library, path: str) -> None:
    """An error message string: path outside the sandbox (absolute paths, `..`, …)."""
    write(library.folder.parent, "secret.md", "Outside the sandbox.")
    answer = library.session.vector_update(path)

    assert answer.startswith(f"The path {path!r} ")
    assert len(answer.splitlines()) == 1


def test_links(library: Library) -> None:
    """Symbolic links out of the sandbox are refused; a link inside stands for its target."""
    write(library.folder.parent, "elsewhere/secret.md", "Where the treasure is buried.")
    (library.folder / "beyond").symlink_to("../elsewhere")
    (library.folder / "out.md").symlink_to(library.folder.parent / "elsewhere" / "secret.md")
    (library.folder / "in").symlink_to("library/geometry")

    for path in ("beyond/secret.md", "out.md"):
        assert "no file inside the sandbox" in library.session.vector_update(path)
    assert library.session.search_skills("where the treasure is buried") == "[]"
    assert library.session.vector_update("in/volume.ns.txt") == "OK"
    assert VOLUME_FILE in paths(library.session.search_skills("volume of a box"))


def test_nul_bytes(library: Library) -> None:
    """A path with a NUL byte is an error message string."""
    answer = library.session.vector_update(f"{AREA_FILE}\0.md")
    assert answer == f"The path {AREA_FILE + chr(0) + '.md'!r} holds control characters."


def test_unreadable_files(library: Library) -> None:
    """A missing, unreadable, binary, empty or too large file is an error message string."""
    os.mkfifo(library.folder / "pipe")
    (library.folder / "picture.png").write_bytes(b"\x89PNG\0")
    write(library.folder, "huge.md", "word " * 60_000)
    write(library.folder, "empty.md", "\n")
    files = {
        "non_existent_skill.ns.txt": "No such file",
        "library": "not a regular file",
        "pipe": "not a regular file",
        "picture.png": "not UTF-8",
        "huge.md": "more than 131,072 bytes",
        "empty.md": "is empty",
    }
    for file, fault in files.items():
        answer = library.session.vector_update(file)
        assert fault in answer
        assert repr(file) in answer


def test_failure_to_embed(library: Library, tmp_path: Path) -> None:
    """A failure to embed is an error message string."""
    with repertory.open(
        library.folder, data_dir=str(tmp_path / "data"), model=str(tmp_path / "none")
    ) as session:
        answer = session.vector_update(ADD_FILE)

    assert answer.startswith("VectorUpdate embedding generation failed: ")
    assert len(answer.splitlines()) == 1


@pytest.mark.parametrize("argument", [None, 7, [AREA_FILE], Path(AREA_FILE)])
def test_anything_but_one_string(library: Library, argument: object) -> None:
    """Anything but exactly one string argument is a validation error."""
    with pytest.raises(UsageError, match=r"Vector\.VectorUpdate"):
        library.session.vector_update(argument)  # type: ignore[arg-type]  # that is the point


def test_the_whole_file_is_read(library: Library) -> None:
    """The whole file is embedded, so the end of a long file is found."""
    numbers = "\n".join(f"# Line {number} of a long licence." for number in range(60))
    place = write(library.folder, "long.ns.txt", f"{numbers}\n{ADD}{AREA}")
    assert library.session.vector_update(place) == "OK"

    assert place in paths(library.session.search_skills("calculate rectangle area"))


def test_an_entry_is_overwritten(library: Library) -> None:
    """Stores it under the file's absolute path; an entry for that path is overwritten."""
    place = write(library.folder, "changing.ns.txt", AREA + VOLUME)
    assert library.session.vector_update(place) == "OK"
    assert place in paths(library.session.search_skills("volume of a box"))
    write(library.folder, place, ADD)
    assert library.session.vector_update(f"./{place}") == "OK"

    assert place not in paths(library.session.search_skills("volume of a box"))
    assert place in paths(library.session.search_skills("add two numbers"))


def test_a_deleted_file_is_removed(library: Library) -> None:
    """An update of a deleted file is an error and removes its entry."""
    place = write(library.folder, "gone.md", "How to shoe a horse.\n")
    assert library.session.vector_update(place) == "OK"
    (library.folder / place).unlink()
    assert paths(library.session.search_skills("shoe a horse")) == [place]

    assert "cannot be read" in library.session.vector_update(place)
    assert library.session.search_skills("shoe a horse") == "[]"


def test_other_processes(library: Library) -> None:
    """Every process finds what another one indexed."""
    mine = write(library.folder, "mine.md", "How to catch a trout with a fly.\n")
    theirs = write(library.folder, "theirs.md", "How to play the violin.\n")
    assert library.session.vector_update(mine) == "OK"

    assert printed(other(library, "vector_update", theirs)) == ["OK"]
    (answer,) = printed(other(library, "search_skills", "catch a trout"))
    assert paths(answer) == [mine]
    assert paths(library.session.search_skills("play the violin")) == [theirs]


def test_processes_at_the_same_time(library: Library) -> None:
    """Two processes can write at the same time."""
    topics = ["pruning roses", "tuning a piano", "mending a net", "carving a spoon"]
    files = [
        write(library.folder, f"topics/{number}.md", f"All about {topic}.\n")
        for number, topic in enumerate(topics)
    ]
    processes = [other(library, "vector_update", *files[start::2]) for start in range(2)]

    assert [line for process in processes for line in printed(process)] == ["OK"] * 4
    for topic, file in zip(topics, files, strict=True):
        assert paths(library.session.search_skills(f"all about {topic}")) == [file]


def test_neuroscript_is_a_source_of_skills(tmp_path: Path) -> None:
    """NeuroScript procedure files are a source of skills: they are found without an update."""
    make_library(tmp_path)
    with repertory.open(tmp_path, data_dir=str(tmp_path / "data"), model=MODEL) as session:
        session.index()
        found = paths(session.search_skills("calculate rectangle area"))

    assert found == [AREA_FILE, VOLUME_FILE]
