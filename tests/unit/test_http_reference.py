"""The page of the HTTP interface, which `make docs` generates from the OpenAPI document."""

import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "clients" / "openapi.json"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The page generated from our own document."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    import_module("http_reference").write(DOCUMENT, tmp_path / "page.md")
    yield (tmp_path / "page.md").read_text("utf-8")
    del sys.modules["http_reference"]


def test_every_operation_has_a_request_and_an_answer(page: str) -> None:
    """The example request has a value for each required parameter."""
    paths = json.loads(DOCUMENT.read_text("utf-8"))["paths"]
    operations = {f"{method.upper()} {path}" for path, one in paths.items() for method in one}
    parts = dict(re.findall(r"^## ((?:GET|POST|PUT|DELETE) \S+)\n(.*?)(?=^## )", page, re.M | re.S))
    assert parts.keys() == operations
    for name, part in parts.items():
        (request,) = re.findall(r"^curl .*$", part, re.MULTILINE)
        missing = re.search(r"[=/]['&]|\{\w+\}|null", request)
        assert not missing, f"{name}: add an example to `EXAMPLES`: {request}"
        assert "It answers 2" in part, name


def test_every_parameter_is_described() -> None:
    """Only the parts of a path need no description, because the operation names them."""
    for path, methods in json.loads(DOCUMENT.read_text("utf-8"))["paths"].items():
        for one in methods.values():
            for parameter in one["parameters"]:
                assert parameter["in"] == "path" or parameter["description"], (path, parameter)


def test_json_is_the_first_media_type() -> None:
    """Many client generators read only the first media type of an answer."""
    for path, methods in json.loads(DOCUMENT.read_text("utf-8"))["paths"].items():
        for one in methods.values():
            for response in one["responses"].values():
                first, *others = response["content"]
                assert not others or first == "application/json", path


def test_every_named_type_is_described(page: str) -> None:
    """Each link leads to a heading on the page."""
    headings = {title.lower() for title in re.findall(r"^### (\w+)$", page, re.MULTILINE)}
    assert set(re.findall(r"\]\(#(\w+)\)", page)) <= headings
    assert '"toolId": "team/key-rotation"' in page
