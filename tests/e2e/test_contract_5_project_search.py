"""Contract 5, the project ``search`` tool, tested embedded and through a server.

Most docstrings quote the sentence of the contract that their test checks.
"""

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request

import anyio
import msgspec
import pytest
from mcp_types import CallToolResult, TextContent

import repertory
from repertory.api import Options, Session
from repertory.errors import UsageError
from repertory.local.one_shot import Repertory
from repertory.project_search.query import ProjectQuery
from repertory.settings import load
from tests.support.builders import write
from tests.support.command_line import Cli, add_skill
from tests.support.mcp_sessions import http_session
from tests.support.query_service import MODEL
from tests.support.server_process import Serve, ask

EMPTY = "searchQuery parameter is required and cannot be empty"
LONG = "Long ago no one rotated any of the keys. " * 5
FILES = {
    "guides/rotation.md": f"# Key rotation\n\n{LONG}Now every API key is rotated monthly. {LONG}",
    "notes.txt": "Remember the ZEBRA crossing.",
    "chapter.md": "---\ntitle: The harbour\nsynopsis: A storm delays the departure.\n---\nRain.",
}
SKILL = "---\nname: release-notes\ndescription: Write notes of a release.\n---\nCollect changes.\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The parent folder of the project, the data directory and the home directory."""
    return tmp_path_factory.mktemp("searched")


class Project(msgspec.Struct, frozen=True):
    """A project to search: its session, and the URL and token of its server, if any."""

    session: Session
    url: str = ""
    token: str = ""

    def found(self, query: str, **options: Any) -> list[str]:  # noqa: ANN401 - as it takes them
        """The ids of the results, in order."""
        content = self.session.search_project(query, **options)["content"]
        return re.findall(r"^   ID: (.*)$", content, re.MULTILINE)


@contextmanager
def serving(root: Path, face: str) -> Iterator[Project]:
    """Open the project in a folder, ``embedded`` or through a ``server``."""
    (root / "project").mkdir(exist_ok=True)
    if face == "embedded":
        data = str(root / "data")
        with closing(repertory.open(root / "project", data_dir=data, model=MODEL)) as session:
            yield Project(session)
        return
    (root / "home").mkdir(exist_ok=True)
    with Serve(Cli(root / "home", root / "data"), root / "project", root / "log") as server:
        yield Project(repertory.connect(server.url, server.token), server.url, server.token)


@pytest.fixture(scope="module", params=["embedded", "server"])
def project(request: pytest.FixtureRequest, root: Path) -> Iterator[Project]:
    """A project of three documents and a skill."""
    for place, text in FILES.items():
        file = root / "project" / place
        write(file, text)
    add_skill(root / "project", "release-notes", SKILL)
    with serving(root, request.param) as project:
        yield project


def refused(project: Project, arguments: object) -> str:
    """The error of the function over HTTP."""
    with pytest.raises(HTTPError) as raised:
        post(project, arguments)
    assert 400 <= raised.value.code < 500
    error: str = json.load(raised.value)["error"]
    return error


def post(project: Project, arguments: object) -> Any:  # noqa: ANN401 - JSON
    """The function's answer over HTTP."""
    body = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
    headers = {"Content-Type": "application/json"}
    request = Request(f"{project.url}/functions/search", body, headers)
    with ask(request, project.token) as response:
        return json.load(response)


def test_search_covers_all_files_of_a_project(project: Project) -> None:
    """An agent tool named `search` over all files of a project."""
    assert project.found("e") == [
        "documents/chapter.md",
        "documents/guides/rotation.md",
        "documents/notes.txt",
        "project/release-notes",
    ]


@pytest.mark.parametrize("face", ["embedded", "server"])
@pytest.mark.parametrize("is_configured", [False, True])
def test_all_files_by_name_and_text(tmp_path: Path, face: str, *, is_configured: bool) -> None:
    """All files of a project: code, hidden files, the whole text of items, and file names."""
    folder = tmp_path / "project"
    files = {
        "area.ns.txt": "DEFINE PROCEDURE Area(width)\nCOMMENT:\n    PURPOSE: The area of a "
        "rectangle.\nENDCOMMENT\nRETURN 0\nEND\n",
        "src/math_helpers.py": "def zeppelin(): ...\n",
        ".github/ci.yml": "on: zeppelin\n",
    }
    if is_configured:
        files["repertory.toml"] = '[[sources]]\ntype = "skills"\npath = "skills"\nname = "team"\n'
    for place, text in files.items():
        write(folder / place, text)
    add_skill(folder, "dask", "---\nname: dask\ndescription: Arrays.\nlicense: BSD\n---\nText.\n")
    with serving(tmp_path, face) as project:
        area = project.found("ENDCOMMENT")
        assert len(area) == 1
        assert project.found("define procedure") == area
        assert project.found("area.ns.txt", search_type="title") == area
        dask = ["team/dask" if is_configured else "project/dask"]
        assert project.found("license: BSD") == project.found("name: dask") == dask
        code = ["files/src/math_helpers.py"]
        assert project.found("def zeppelin") == project.found("math_helpers") == code
        assert project.found("zeppelin") == ["files/.github/ci.yml", *code]
        assert project.found("zepelin", fuzzy_search=True) == ["files/.github/ci.yml", *code]


def test_an_edit_is_searched_at_once(project: Project, root: Path) -> None:
    """New, changed and deleted files are searched at once, before they are indexed."""
    file = root / "project" / "new.md"
    try:
        for text, other in (("okapi", "quokka"), ("quokka", "okapi")):
            file.write_text(text, "utf-8")
            assert len(project.found(text)) == 1
            assert project.found(other) == []
    finally:
        file.unlink()
    assert project.found("quokka") == []


def test_files_other_than_documents(tmp_path: Path) -> None:
    """Code and data files are searched, but not ignored, binary or secret files."""
    folder = tmp_path / "project"
    for place in ("src/main.py", "data.json", "build/out.py", ".env", "picture.bin"):
        write(folder / place, 'quagga = "Zoo"\n')
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
        assert Project(session).found("quagga") == found


def test_files_are_found_before_anything_is_indexed(tmp_path: Path) -> None:
    """Files are found without an index, except in a data directory inside the project."""
    (tmp_path / "zebra.py").write_text("import okapi", "utf-8")
    settings = load({"data_dir": str(tmp_path / "data"), "model": MODEL}, tmp_path, {})
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "okapi.json").write_text("{}", "utf-8")
    with Repertory(settings, tmp_path) as backend:
        answer = backend.search_project(ProjectQuery(search_query="okapi"))
    assert re.findall("   ID: (.*)", answer.content) == ["files/zebra.py"]


def test_a_home_directory_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a home directory, only indexed items are searched, not all files."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "private.py").write_text("zebra", "utf-8")
    add_skill(tmp_path / ".claude", "stripes", "---\nname: stripes\ndescription: A zebra's.\n---\n")
    with repertory.open(tmp_path, data_dir=str(tmp_path / "data"), model=MODEL) as session:
        assert Project(session).found("zebra") == ["project-claude/stripes"]


@pytest.mark.parametrize("query", ["", "  \n\t"])
def test_an_empty_query_is_an_error(project: Project, query: str) -> None:
    """`searchQuery` (required; empty or blank is the error …), in the form `{"error"}`."""
    assert project.session.search_project(query) == {"error": EMPTY}


@pytest.mark.parametrize("project", ["server"], indirect=True)
@pytest.mark.parametrize("arguments", [{}, {"searchQuery": None}, {"searchQuery": " "}])
def test_a_missing_query_is_the_same_error_over_http(
    project: Project, arguments: dict[str, Any]
) -> None:
    """A missing or blank query over HTTP gets the error of the contract."""
    assert refused(project, arguments) == EMPTY


@pytest.mark.parametrize("project", ["server"], indirect=True)
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"searchQuery": " "}, EMPTY),
        ({"searchQuery": "x", "maxResults": 0}, "maxResults is 0; it must be 1 or more."),
        ({"searchQuery": "x", "maxResults": -2}, "maxResults is -2; it must be 1 or more."),
        ({"searchQuery": "x", "threshold": 2}, "threshold is 2.0; it must be from 0 to 1."),
        (
            {"searchQuery": "x", "threshold": 10**400},
            "threshold is out of range; it must be from 0 to 1.",
        ),
        ({"searchQuery": 1}, "search: searchQuery must be string."),
        (
            {"searchQuery": "x", "searchType": "body"},
            'search: searchType must be one of ["title", "content", "synopsis", "all"].',
        ),
    ],
)
def test_every_face_has_the_errors_of_the_contract(
    project: Project, arguments: dict[str, Any], error: str
) -> None:
    """Python, HTTP and MCP return the same errors."""
    names = {"searchQuery": "search_query", "maxResults": "max_results"}
    names["searchType"] = "search_type"
    given = {names.get(name, name): value for name, value in arguments.items()}
    assert project.session.search_project(**given) == {"error": error}
    assert refused(project, arguments) == error

    async def ask() -> CallToolResult:
        async with http_session(f"{project.url}/mcp/project", project.token) as client:
            return await client.call_tool("search", arguments)

    result = anyio.run(ask)
    assert result.is_error
    assert isinstance(result.content[0], TextContent)
    assert json.loads(result.content[0].text) == {"error": error}


@pytest.mark.parametrize("project", ["server"], indirect=True)
@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff\xfe"])
def test_an_unreadable_body_is_an_error_of_the_same_form(project: Project, body: bytes) -> None:
    """A body that is no JSON object gets an error in the form of the contract."""
    assert "body" in refused(project, body) or "object" in refused(project, body)


def test_a_closed_session_raises(tmp_path: Path) -> None:
    """A closed session raises instead of returning an error of the contract."""
    session = repertory.open(tmp_path, data_dir=str(tmp_path / "data"), model=MODEL)
    session.close()
    with pytest.raises(UsageError, match="closed"):
        session.search_project("x")


@pytest.mark.parametrize(
    ("query", "search_type", "found"),
    [
        ("rotation", "title", ["documents/guides/rotation.md"]),
        ("rotated monthly", "title", []),
        ("rotated monthly", "content", ["documents/guides/rotation.md"]),
        ("storm", "content", ["documents/chapter.md"]),
        ("harbour lights", "synopsis", []),
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


def test_one_letter_is_no_fuzzy_match(project: Project) -> None:
    """A fuzzy match has at least two characters; an exact match may have one."""
    assert project.found("e", fuzzy_search=True) == []
    assert len(project.found("e")) == 4


def test_max_results(project: Project) -> None:
    """`maxResults` (default 20) may be any positive number."""
    assert project.found("e", max_results=1) == ["documents/chapter.md"]
    assert len(project.found("e", max_results=5_000)) == 4
    assert "maxResults" in project.session.search_project("e", max_results=0)["error"]


def test_threshold(project: Project) -> None:
    """`threshold` (default 0.3; 0.0 exact, 1.0 anything)."""
    assert project.found("zebar", fuzzy_search=True, threshold=0.0) == []
    assert project.found("zebra", fuzzy_search=True, threshold=0.0) == ["documents/notes.txt"]
    everything = project.found("zebar", fuzzy_search=True, threshold=1.0)
    assert everything[0] == "documents/notes.txt"
    assert len(everything) == 4
    assert "threshold" in project.session.search_project("e", threshold=1.1)["error"]


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


def test_the_form_of_the_answer(project: Project) -> None:
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
        assert post(project, arguments) == expected


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
    with serving(tmp_path, "embedded") as project:
        answer = project.session.search_project("anything")
        assert answer["content"] == "No files found in the project."
        assert (answer["success"], answer["totalResults"]) == (True, 0)


@pytest.mark.parametrize("project", ["server"], indirect=True)
def test_the_definition_is_served(project: Project) -> None:
    """The definition is served in the JSON form that function-calling models take."""
    with ask(f"{project.url}/functions", project.token) as response:
        definitions = {one["function"]["name"]: one for one in json.load(response)}
    assert definitions["search"] == {
        "type": "function",
        "function": {
            "name": "search",
            "description": "Search through all project files using exact or fuzzy matching",
            "parameters": {
                "type": "object",
                "properties": {
                    "searchQuery": {"type": "string", "description": "The text to search for"},
                    "searchType": {
                        "type": "string",
                        "description": "Type of content to search in",
                        "enum": ["title", "content", "synopsis", "all"],
                        "default": "all",
                    },
                    "fuzzySearch": {
                        "type": "boolean",
                        "description": "Enable fuzzy search for typo tolerance and approximate "
                        "matching",
                        "default": False,
                    },
                    "maxResults": {
                        "type": "number",
                        "description": "Maximum number of results to return",
                        "default": 20,
                    },
                    "threshold": {
                        "type": "number",
                        "description": "Fuzzy search sensitivity (0.0 = exact match, 1.0 = match "
                        "anything)",
                        "default": 0.3,
                    },
                },
                "required": ["searchQuery"],
            },
        },
    }
