"""Names with decomposed accents, as macOS writes them, match the composed form that people type."""

import json
from pathlib import Path

import pytest
from mcp_types import TextResourceContents

from repertory.errors import UnknownItemError
from repertory.index.vectors import Filter
from repertory.local.one_shot import Repertory
from repertory.search.query import Query
from repertory.sources.tools import takes
from repertory.typescript.selection import select_tools
from repertory_query.mcp import resources
from repertory_query.mcp.reading import GET
from repertory_query.mcp.tool import in_words
from tests.support.builders import write
from tests.support.mcp_servers import started
from tests.support.query_service import settings_of

TYPED = "\u00e9t\u00e9"
APART = "e\u0301te\u0301"


def test_a_typed_name_matches_a_server_with_decomposed_accents(tmp_path: Path) -> None:
    """Filters, the selection of types, and calls of tools accept the composed form of the name."""
    with started("callee.py", "http") as url:
        config = write(tmp_path / "mcp.json", json.dumps({"mcpServers": {APART: {"url": url}}}))
        settings = settings_of(tmp_path, mcp_config=[str(config)], allow_calls=True)
        with Repertory(settings, tmp_path) as backend:
            backend.index()
            for where in (Filter(servers=(TYPED,)), Filter(sources=(TYPED,))):
                entries = backend.entries(where)
                assert entries
                assert backend.page(where, 100)[1] == len(entries)
                assert backend.search(Query(text="add", where=where)).hits[0].id == f"{APART}__add"
                assert backend.explain(Query(text="add", where=where), "add").shown
            assert select_tools(entries, [TYPED]) == [one.id for one in entries]
            assert select_tools(entries, [f"{TYPED}__add"]) == [f"{APART}__add"]
            result = backend.call(f"{TYPED}__add", {"first": 1, "second": 2})
            assert result.structured_content == {"result": 3}
            with pytest.raises(UnknownItemError):  # accents still matter
                backend.call("ete__add", {"first": 1, "second": 2})


def test_a_text_is_read_by_any_spelling_of_its_uri_and_headings(tmp_path: Path) -> None:
    """Models may write a URI without percent-encoding, and decompose the accents of a heading."""
    write(tmp_path / f"docs/{TYPED}.md", f"# Doc\n\nSome.\n\n## L'{TYPED}\n\nIt is warm.\n")
    with Repertory(settings_of(tmp_path), tmp_path) as backend:
        backend.index()
        for name in (TYPED, "%C3%A9t%C3%A9", "%c3%a9t%c3%a9"):
            uri = f"document://documents/docs/{name}.md"
            found = resources.read(backend, uri)
            assert isinstance(found, TextResourceContents)
            assert found.text.startswith("# Doc")
            assert found.uri == uri
        with pytest.raises(UnknownItemError, match="is document://"):
            resources.read(backend, f"tool://documents/docs/{TYPED}.md")
        for section in (f"l'{TYPED}", f"L'{APART}"):
            answer = GET.run(backend, {"id": f"documents/docs/{TYPED}.md", "section": section})
            assert answer.content == in_words(f"## L'{TYPED}\n\nIt is warm.").content


@pytest.mark.parametrize(("glob", "name"), [(TYPED, APART), (APART, TYPED)])
def test_globs_match_tools_in_either_form_of_accents(glob: str, name: str) -> None:
    """Included and excluded names match, whichever of glob and name is decomposed."""
    assert takes("server", name, [glob], [])
    assert not takes("server", f"delete_{name}", [], [f"delete_{glob}"])
    assert not takes(name, "delete", [], [f"{glob}__*"])
