"""Copies of an item share one place in the results, and a deleted copy hides no existing one."""

import shutil
from pathlib import Path

import pytest

from repertory.local.one_shot import Repertory
from repertory.search.explain import explain
from repertory.search.query import Query
from tests.support.builders import write, write_skill
from tests.support.query_service import settings_of

KEYS = "Rotate API keys of a service without downtime"

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder of a project; the home directory is beside it."""
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def found(project: Path, text: str, **more: float) -> list[str]:
    """The ids that a new process finds in the existing index."""
    with Repertory(settings_of(project), project) as repertory:
        return [hit.id for hit in repertory.search(Query(text=text, **more)).hits]  # type: ignore[arg-type]  # a limit


def test_a_deleted_copy_does_not_hide_the_remaining_one(project: Path) -> None:
    """Its source is suddenly empty, so the index still has the deleted copy."""
    write_skill(project, "rotate-keys", KEYS)
    write_skill(project.parent / "home" / ".claude", "rotate-keys", KEYS)
    with Repertory(settings_of(project), project) as repertory:
        repertory.index()
        (hit,) = repertory.search(Query(text="rotate API keys")).hits
        assert (hit.id, hit.duplicates) == ("project/rotate-keys", ("user-claude/rotate-keys",))
        shutil.rmtree(project / "skills" / "rotate-keys")
        (hit,) = repertory.search(Query(text="rotate API keys")).hits
        assert (hit.id, hit.duplicates, hit.shadowed_by) == ("user-claude/rotate-keys", (), "")
        why = repertory.explain(Query(text="rotate API keys"), "user-claude/rotate-keys")
        assert why.verdict.startswith("Shown, at place 1 of 1.")
    assert found(project, "rotate-keys") == ["user-claude/rotate-keys"]


def test_copies_do_not_displace_other_results(project: Path) -> None:
    """The results are the same with sixty copies of an item as with one."""
    number = 60
    for copy in range(number):
        text = f"---\nname: rotate-keys\ndescription: {KEYS}.\n---\n\nDo it with care.\n"
        write(project / f"m{copy:02}" / "rotate-keys" / "SKILL.md", text)
    write_skill(project, "credential-renewal", "Renew the credentials that a service uses")
    write_skill(project, "release-notes", "Write release notes")
    query = Query(text="rotate API keys of a service", threshold=0.0, limit=9)
    with Repertory(settings_of(project), project) as repertory:
        repertory.index()
        with_copies = repertory.search(query).hits
        for copy in (3, 30, number - 1):
            item = f"other-skills/m{copy:02}/rotate-keys"
            assert explain(repertory.engine, query, item).verdict.startswith("Shown as ")
    for copy in range(1, number):
        shutil.rmtree(project / f"m{copy:02}")
    with Repertory(settings_of(project), project) as repertory:
        repertory.index()
        alone = repertory.search(query).hits
    assert [hit.id for hit in with_copies] == [hit.id for hit in alone]
    assert "project/credential-renewal" in [hit.id for hit in alone]


def test_the_symbol_in_the_name_of_a_language_matters(project: Path) -> None:
    """C, C++ and C# are three names."""
    for file, title in (("c", "C"), ("cpp", "C++"), ("cs", "C#"), ("fs", "F# #")):
        write(project / f"{file}.md", f"# {title}\n\nHow we write programs in it.\n")
    with Repertory(settings_of(project), project) as repertory:
        repertory.index()
        for file, title in (("c", "C"), ("cpp", "C++"), ("cs", "c#"), ("fs", "F#")):
            first = repertory.search(Query(text=title, threshold=0.0)).hits[0]
            assert (first.id, first.reason) == (f"documents/{file}.md", "Exact name match")
