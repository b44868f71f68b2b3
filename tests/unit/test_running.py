"""A running server answers a command only if it was given all flags that the command names."""

from pathlib import Path

import pytest

from repertory.remote.running import note_of
from repertory.settings import Settings, load

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.mark.parametrize(
    "named",
    [
        {"model": "multilingual"},
        {"qdrant_url": "http://localhost:6333"},
        {"mcp_config": "mine.json"},
    ],
)
def test_a_server_answers_commands_with_its_own_flags(
    tmp_path: Path, named: dict[str, str]
) -> None:
    """It also answers commands without flags, but no commands with flags that it was not given."""

    def settings(flags: dict[str, str]) -> Settings:
        return load({"data_dir": str(tmp_path / "data"), **flags}, tmp_path, {})

    given, plain = (
        note_of(settings(flags), tmp_path, "http://127.0.0.1:7700", "x") for flags in (named, {})
    )
    assert given.serves(settings(named), tmp_path)
    assert given.serves(settings({}), tmp_path)
    assert not plain.serves(settings(named), tmp_path)
    assert not given.serves(settings(named), tmp_path / "other")
    assert not given.serves(settings({"namespace": "b"}), tmp_path)


def test_a_server_started_with_the_project_file_answers_commands_that_discover_it(
    tmp_path: Path,
) -> None:
    """A server that discovered its file answers no command naming it, since naming grants more."""
    for name in ("repertory.toml", "other.toml"):
        (tmp_path / name).write_text("")

    def settings(file: str | None) -> Settings:
        return load({"data_dir": str(tmp_path / "data"), "config": file}, tmp_path, {})

    def serves(given: str | None, asked: str | None) -> bool:
        note = note_of(settings(given), tmp_path, "http://127.0.0.1:7700", "x")
        return note.serves(settings(asked), tmp_path)

    assert serves("repertory.toml", None)
    assert serves("other.toml", "other.toml")
    assert not serves(None, "repertory.toml")
    assert not serves("other.toml", None)
    assert not serves("repertory.toml", "other.toml")
    (tmp_path / "repertory.toml").unlink()
    assert not serves("other.toml", None)
