"""The pages about agent hosts show what ``repertory connect`` writes."""

import re
from pathlib import Path

import pytest

from repertory.agent_hosts.host import Host, Scope
from repertory.agent_hosts.our_entry import program
from repertory.agent_hosts.table import HOSTS
from tests.support.command_line import Cli

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "hosts"
NAMES = [host.id for host in HOSTS]


def page(name: str) -> str:
    """The text of a host's page."""
    return (FOLDER / f"{name}.md").read_text("utf-8")


def printed(user: Cli, folder: Path, name: str, *options: str) -> str:
    """The entry that `connect --print` prints, with the paths of the pages."""
    words = ("connect", name, "--print", *options)
    text = user.run(folder, *words, REPERTORY_DATA_DIR="").stdout
    assert len(program()) == 1
    return text.replace(program()[0], "/home/anna/.local/bin/repertory").replace(
        str(folder), "/home/anna/project"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_the_printed_entries(user: Cli, tmp_path: Path, name: str) -> None:
    """A page shows the local entry, and the entry for the URL of a team's server."""
    local, url = re.findall(r"```(?:json|toml|yaml)\n(.*?)```", page(name), re.DOTALL)
    assert local == printed(user, tmp_path, name)
    assert url == printed(
        user, tmp_path, name, "--url", "https://repertory.example.com", "--key", "KEY"
    )


@pytest.mark.parametrize("host", HOSTS, ids=NAMES)
def test_a_page_says_where_and_how(host: Host) -> None:
    """A page has the command, its undo, each scope, the limits and how it was verified."""
    name, places = host.id, host.places
    text = page(name)
    assert f"repertory connect {name}" in text
    assert f"`repertory connect {name} --undo`" in text
    assert ("--project" in text) == (Scope.PROJECT in places)
    for place in places.values():
        assert place.files[0] in text
    assert "\n## Limits\n" in text
    verified = text.partition("\n## How this page was verified\n")[2]
    assert re.search(
        r"by the host's own program: .* \d+\.\d+|by its published format only", verified
    )
    assert ("its program" in line_of(name)) == ("own program" in verified)


def line_of(name: str) -> str:
    """The line of a host in the index of the pages."""
    (line,) = re.findall(rf"^\| \[{name}\]\({name}\.md\) .*$", page("README"), re.MULTILINE)
    return str(line)


def test_the_index_has_every_page() -> None:
    """The index lists all pages, one for each host."""
    pages = {path.stem for path in FOLDER.glob("*.md")} - {"README"}
    assert pages == set(NAMES) == set(re.findall(r"\]\(([\w-]+)\.md\)", page("README")))
