"""Contract 5, the project ``search`` tool, sentence by sentence: embedded, and through a server."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import msgspec
import pytest

import repertory
from repertory.api import Options, Session
from repertory.errors import UsageError
from repertory.functions.table import FUNCTIONS
from tests.support.command_line import Cli, add_skill
from tests.support.query_service import MODEL
from tests.support.server_process import Serve

EMPTY = "searchQuery parameter is required and cannot be empty"
LONG = "Long ago no one rotated any of the keys. " * 5
FILES = {
    "guides/rotation.md": f"# Key rotation\n\n{LONG}Now every API key is rotated monthly. {LONG}",
    "notes.txt": "Remember the ZEBRA crossing.",
    "chapter.md": "---\ntitle: The harbour\nsynopsis: A storm delays the departure.\n---\nRain.",
}
SKILL = "---\nname: release-notes\ndescription: Write notes of a release.\n---\nCollect changes.\n"


class Project(msgspec.Struct, frozen=True):
    """A project to search: the session, and its server's URL if there is one."""

    session: Session
    url: str = ""

    def found(self, query: str, **options: Any) -> list[str]:  # noqa: ANN401 - as it takes them
        """The ids of the results, in order."""
        content = self.session.search_project(query, **options)["content"]
        return re.findall(r"^   ID: (.*)$", content, re.MULTILINE)


def serving(root: Path, face: str) -> Iterator[Project]:
    """The files of a folder, ``embedded`` or behind a ``server``."""
    (root / "project").mkdir(exist_ok=True)
    if face == "embedded":
        data = str(root / "data")
        with closing(repertory.open(root / "project", data_dir=data, model=MODEL)) as session:
            yield Project(session)
        return
    (root / "home").mkdir()
    with Serve(Cli(root / "home", root / "data"), root / "project", root / "log") as server:
        yield Project(repertory.connect(server.url), server.url)


@pytest.fixture(scope="module", params=["embedded", "server"])
def project(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Project]:
    """A project of three documents and a skill."""
    root = tmp_path_factory.mktemp("searched")
    for place, text in FILES.items():
        file = root / "project" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    add_skill(root / "project", "release-notes", SKILL)
    yield from serving(root, request.param)


def post(url: str, arguments: object) -> Any:  # noqa: ANN401 - JSON
    """The function's answer over HTTP."""
    request = Request(
        f"{url}/functions/search",
        json.dumps(arguments).encode(),
        {"Content-Type": "application/json"},
    )
    with urlopen(request, timeout=60) as response:
        return json.load(response)


def test_an_agent_tool_named_search_over_all_files_of_a_project(project: Project) -> None:
    """An agent tool named `search` over all files of a project."""
    assert project.found("e") == [
        "documents/chapter.md",
        "documents/guides/rotation.md",
        "documents/notes.txt",
        "project/release-notes",
    ]


def test_files_other_than_documents(tmp_path: Path) -> None:
    """All files, including code and data that are not items; no ignored or hidden ones."""
    folder = tmp_path / "project"
    for place in ("src/main.py", "data.json", "build/out.py", ".env", "picture.bin"):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text('quagga = "Zoo"\n', "utf-8")
    (folder / "picture.bin").write_bytes(b"\0quagga")
    (folder / ".gitignore").write_text("build/\n", "utf-8")
    (folder / "readme.md").write_text("# A quagga\n\nOnce.\n", "utf-8")
    options: Options = {"data_dir": str(tmp_path / "data"), "model": MODEL}
    with repertory.open(folder, **options) as session:
        found = Project(session).found("QUAGGA", fuzzy_search=False)
        assert found == ["documents/readme.md", "files/data.json", "files/src/main.py"]
        assert Project(session).found("quaga", fuzzy_search=True) == found
        assert [entry.id for entry in session.items()] == ["documents/readme.md"]
        preview = session.search_project("zoo", search_type="content", max_results=1)["content"]
        assert 'Preview: quagga = "Zoo"' in preview
    (folder / "repertory.toml").write_text(
        '[[sources]]\ntype = "documents"\npath = "."\nname = "documents"\n', "utf-8"
    )
    with repertory.open(folder, **options) as session:
        assert Project(session).found("quagga") == ["documents/readme.md"]


@pytest.mark.parametrize("query", ["", "  \n\t"])
def test_an_empty_query_is_an_error(project: Project, query: str) -> None:
    """`searchQuery` (required; empty or blank is the error …)."""
    with pytest.raises(UsageError, match=f"^{EMPTY}$"):
        project.session.search_project(query)


@pytest.mark.parametrize("project", ["server"], indirect=True)
@pytest.mark.parametrize("arguments", [{}, {"searchQuery": None}, {"searchQuery": " "}])
def test_a_missing_query_is_the_same_error_over_http(
    project: Project, arguments: dict[str, Any]
) -> None:
    """`searchQuery` parameter is required and cannot be empty, as a problem of HTTP."""
    with pytest.raises(HTTPError) as refused:
        post(project.url, arguments)
    assert refused.value.code == 422
    assert json.load(refused.value)["detail"] == EMPTY


@pytest.mark.parametrize(
    ("query", "search_type", "found"),
    [
        ("rotation", "title", ["documents/guides/rotation.md"]),
        ("rotated monthly", "title", []),
        ("rotated monthly", "content", ["documents/guides/rotation.md"]),
        ("storm", "content", []),
        ("storm", "synopsis", ["documents/chapter.md"]),
        ("storm", "all", ["documents/chapter.md"]),
    ],
)
def test_search_type(project: Project, query: str, search_type: str, found: list[str]) -> None:
    """`searchType` `title | content | synopsis | all` (default `all`)."""
    assert project.found(query, search_type=search_type) == found
    if search_type == "all":
        assert project.found(query) == found


def test_exact_mode_is_a_substring_match_ignoring_case(project: Project) -> None:
    """Exact mode is a case-insensitive substring match; `fuzzySearch` (default false)."""
    assert project.found("zebrA CROSS") == ["documents/notes.txt"]
    assert project.found("zebar") == []


def test_fuzzy_tolerates_typos(project: Project) -> None:
    """Fuzzy mode tolerates typos."""
    assert project.found("zebar crosing", fuzzy_search=True) == ["documents/notes.txt"]
    assert project.found("relese-ntoes", fuzzy_search=True)[0] == "project/release-notes"


def test_max_results(project: Project) -> None:
    """`maxResults` (default 20)."""
    assert project.found("e", max_results=1) == ["documents/chapter.md"]
    parameters = FUNCTIONS["search"].parameters["properties"]
    assert parameters["maxResults"]["default"] == 20
    with pytest.raises(UsageError, match="maxResults"):
        project.session.search_project("e", max_results=0)


def test_threshold(project: Project) -> None:
    """`threshold` (default 0.3; 0.0 exact, 1.0 anything)."""
    assert project.found("zebar", fuzzy_search=True, threshold=0.0) == []
    assert project.found("zebra", fuzzy_search=True, threshold=0.0) == ["documents/notes.txt"]
    everything = project.found("zebar", fuzzy_search=True, threshold=1.0)
    assert everything[0] == "documents/notes.txt"
    assert len(everything) == 4
    with pytest.raises(UsageError, match="threshold"):
        project.session.search_project("e", threshold=1.1)


def test_the_fields_of_each_result(project: Project) -> None:
    """Each result has the file's id, title, path, which field matched, and a snippet."""
    content = project.session.search_project("every api key")["content"]
    _, _, result = content.partition("\n\n")
    number, item, path, field, preview = result.splitlines()
    assert number == "1. Key rotation"
    assert item == "   ID: documents/guides/rotation.md"
    assert path == "   Path: guides/rotation.md"
    assert field == "   Match: content"
    snippet = preview.removeprefix("   Preview: ")
    assert snippet.startswith("...")
    assert snippet.endswith("...")
    assert "every API key" in snippet
    assert len(snippet) <= 100


def test_relevance_in_percent(project: Project) -> None:
    """In fuzzy mode a relevance in percent."""
    content = project.session.search_project("zebar", fuzzy_search=True)["content"]
    assert "   Match: content (80% relevance)\n" in content


def test_the_answer(project: Project) -> None:
    """The answer is `{"success", "content", "totalResults"}`, `content` being readable text."""
    arguments = {"searchQuery": "zebra", "searchType": "content", "maxResults": 5}
    expected = {
        "success": True,
        "content": """\
SEARCH RESULTS
Query: "zebra"
Search Type: content
Mode: Exact search
Results: 1

1. notes.txt
   ID: documents/notes.txt
   Path: notes.txt
   Match: content
   Preview: Remember the ZEBRA crossing.
""",
        "totalResults": 1,
    }
    found = project.session.search_project("zebra", search_type="content", max_results=5)
    assert found == expected
    if project.url:
        assert post(project.url, arguments) == expected


def test_no_results_come_with_suggestions(project: Project) -> None:
    """With no results, three suggestions."""
    answer = project.session.search_project("giraffe", search_type="title", fuzzy_search=True)
    assert (
        answer["content"]
        == """\
SEARCH RESULTS
Query: "giraffe"
Search Type: title
Mode: Fuzzy search
Results: 0

No files found matching "giraffe".

Try:
- Different search terms
- Fuzzy search for typo tolerance
- Broader search type (e.g., "all" instead of "title")
"""
    )
    assert (answer["success"], answer["totalResults"]) == (True, 0)


def test_no_files(tmp_path: Path) -> None:
    """With no files, `No files found in the project.`."""
    for project in serving(tmp_path, "embedded"):
        answer = project.session.search_project("anything")
        assert answer["content"] == "No files found in the project."
        assert (answer["success"], answer["totalResults"]) == (True, 0)


@pytest.mark.parametrize("project", ["server"], indirect=True)
def test_its_definition_is_served(project: Project) -> None:
    """Its definition is served in the JSON form that function-calling models take."""
    with urlopen(f"{project.url}/functions", timeout=60) as response:
        definitions = {one["function"]["name"]: one for one in json.load(response)}
    definition = definitions["search"]
    assert definition["type"] == "function"
    parameters = definition["function"]["parameters"]
    described = {
        name: (one["type"], one.get("default")) for name, one in parameters["properties"].items()
    }
    assert described == {
        "searchQuery": ("string", None),
        "searchType": ("string", "all"),
        "fuzzySearch": ("boolean", False),
        "maxResults": ("number", 20),
        "threshold": ("number", 0.3),
    }
    types = parameters["properties"]["searchType"]["enum"]
    assert types == ["title", "content", "synopsis", "all"]
    assert parameters["required"] == ["searchQuery"]
