"""Random catalogues and policies: no route names a hidden source, or any of its words."""

import json
import random
import re
import string
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from repertory.keys import Keys, Scope
from repertory.wire import V1
from tests.support.builders import write
from tests.support.query_service import RunningService, bearer, rpc, use_tool

PAGE = {"Accept": "text/html"}
VERBS = ("rotate", "write", "deploy", "review", "translate", "delete")
THINGS = ("keys", "notes", "servers", "invoices", "letters", "tables")
GROUPS = ("red", "green", "blue")
TOOLSETS = ("/mcp", "/mcp/skills", "/mcp/portable-skills", "/mcp/project", "/mcp/explain")


class Made(msgspec.Struct):
    """One random source.

    Attributes:
        entry: Its entry in the configuration.
        ids: The ids of its items.
        words: Words that only it has.
        is_hidden: Whether callers of the group "green" cannot see it.
    """

    entry: dict[str, Any]
    ids: list[str]
    words: list[str]
    is_hidden: bool


class Maker:
    """Makes random sources below a folder."""

    def __init__(self, seed: int, folder: Path) -> None:
        self._random = random.Random(seed)
        self._folder = folder
        self._names: list[str] = []  # of items, which policies refer to

    def word(self, start: str) -> str:
        """A word that occurs nowhere else."""
        return start + "".join(self._random.choices(string.ascii_lowercase, k=9))

    def source(self, kind: str, *, is_hidden: bool) -> Made:
        """A source with some items, whose words say whether it is hidden."""
        start = "hid" if is_hidden else "vis"
        name = self.word(start)
        groups = ["red", "blue"] if is_hidden else self._random.choice([[], ["green", "red"]])
        place = "missing" if self._random.random() < 0.1 else name
        entry: dict[str, Any] = {
            "type": kind,
            "name": name,
            "path": f"{place}{'.json' * (kind == 'tools')}",
        }
        if groups:
            entry["visible_to"] = self._random.sample(groups, k=len(groups))
        if kind == "skills" and self._random.random() < 0.2:
            entry["trust"] = "quarantine"
        made = Made(entry, [], [name], is_hidden)
        write_items = {"skills": self._skills, "documents": self._documents, "tools": self._tools}
        write_items[kind](made, start)
        return made

    def _text(self, made: Made, start: str) -> str:
        made.words.append(self.word(start))
        verb, thing = self._random.choice(VERBS), self._random.choice(THINGS)
        return f"{verb.capitalize()} {thing} {self._random.choice(THINGS)} {made.words[-1]}"

    def _name(self, made: Made, start: str) -> str:
        made.words.append(self.word(start))
        self._names.append(made.words[-1])
        return made.words[-1]

    def _policy(self, made: Made, start: str) -> dict[str, Any]:
        given: dict[str, Any] = {}
        if self._random.random() < 0.4:
            given["pin"] = [f"{self._random.choice(VERBS)} {self._random.choice(THINGS)}"]
        if self._random.random() < 0.4:
            given["aliases"] = [self._name(made, start), self._random.choice(THINGS)]
        if self._random.random() < 0.3:
            given["boost"] = self._random.choice([-0.5, 0.25])
        if self._random.random() < 0.3:
            known = [one for one in self._names if made.is_hidden or one.startswith("vis")]
            given["deprecated_by"] = self._random.choice(known or ["nothing"])
        if self._random.random() < 0.2:
            given["when_not_to_use"] = self._text(made, start)
        return given

    def _skills(self, made: Made, start: str) -> None:
        for _ in range(self._random.randint(2, 5)):
            folder, name = self._name(made, start), self._name(made, start)
            own = {"name": name, "description": self._text(made, start), "tags": [self.word(start)]}
            own |= self._policy(made, start)
            made.words += own["tags"]
            front = "\n".join(f"{key}: {json.dumps(value)}" for key, value in own.items())
            root = self._folder / made.entry["name"] / folder
            write(root / "SKILL.md", f"---\n{front}\n---\n# {self._text(made, start)}\nText.\n")
            write(root / f"{self._name(made, start)}.md", self._text(made, start))
            made.ids.append(f"{made.entry['name']}/{folder}")
        broken = self._name(made, start)
        write(self._folder / made.entry["name"] / broken / "SKILL.md", "---\nname: [\n---\n")

    def _documents(self, made: Made, start: str) -> None:
        for _ in range(self._random.randint(2, 4)):
            name = self._name(made, start)
            parts = [f"## {self._text(made, start)}\n\n{self._text(made, start)}" for _ in "ab"]
            text = f"# {self._text(made, start)}\n\n" + "\n\n".join(parts)
            write(self._folder / made.entry["name"] / f"{name}.md", text)
            made.ids.append(f"{made.entry['name']}/{name}.md")

    def _tools(self, made: Made, start: str) -> None:
        server, tools = self._name(made, start), []
        for _ in range(self._random.randint(2, 4)):
            parameter, tag = self._name(made, start), self._name(made, start)
            schema = {"type": "object", "properties": {parameter: {"type": "string"}}}
            tool = {"name": self._name(made, start), "description": self._text(made, start)}
            tools.append(tool | {"inputSchema": schema, "tags": [tag]} | self._policy(made, start))
            made.ids.append(f"{server}__{tool['name']}")
        write(self._folder / made.entry["path"], json.dumps({"server": server, "tools": tools}))


def toml(made: list[Made]) -> str:
    """The configuration of sources."""
    lines = []
    for one in made:
        lines.append("[[sources]]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in one.entry.items()]
    return "\n".join(lines) + "\n"


def paths_of(made: list[Made], texts: list[str]) -> Iterator[str]:
    """The paths of all read requests about some sources."""
    names = [one.entry["name"] for one in made]
    for text in texts:
        query = text.replace(" ", "+")
        for more in ("", "&threshold=0&limit=100", "&format=markdown", "&format=types&threshold=0"):
            yield f"/v1/search?q={query}{more}"
        yield f"/?q={query}&threshold=0"
        yield f"/runtime/tools.ts?filter={query}"
        for name in ("source", "server", "tag"):
            yield f"/search?q=notes&{name}={query}"
            yield f"/items?{name}={query}"
            yield f"/catalogue?{name}={query}"
        for item in [one.ids[0] for one in made]:
            yield f"/explain?q={query}&item={item}"
            yield f"/why?q={query}&item={item}"
    for name in names:
        yield f"/items?source={name}"
        yield f"/?source={name}"
    for item in [item for one in made for item in one.ids]:
        for path in ("items", "view", "try", "links"):
            yield f"/{path}/{item}"
        yield f"/skills/file?item={item}&place=SKILL.md"
        yield f"/items?after={item}&limit=3"
    yield from ("/items", "/runtime/tools.ts", "/catalogue", "/connect", "/", "/stats", "/status")
    yield from ("/contents", "/metrics", "/queue", "/reviews", "/reviews/history", "/insights")
    yield from ("/insights/unanswered", "/api", "/openapi.json", "/functions", "/status/reviews")


def answers(client: TestClient, made: list[Made], texts: list[str]) -> Iterator[tuple[str, str]]:
    """All answers, each with its request."""
    for path in paths_of(made, texts):
        is_page = not path.startswith((V1, "/items", "/search", "/explain", "/links"))
        answer = client.get(path, headers=PAGE if is_page else {})
        yield path, f"{answer.status_code} {answer.headers} {answer.text}"
    ids = [item for one in made for item in one.ids]
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("/items", {"ids": ids}),
        ("/skills/files", {"ids": ids}),
        ("/search", {"queries": [{"q": text, "threshold": 0} for text in texts[:20]]}),
        *(("/functions/skill.discovery.search", {"query": text}) for text in texts),
        *(("/functions/Vector.SearchSkills", {"query": text}) for text in texts),
        *(("/functions/search", {"searchQuery": text, "fuzzySearch": True}) for text in texts),
        *((f"/tools/{item}", {}) for item in ids),
    ]
    for path, body in bodies:
        answer = client.post(path, json=body)
        yield f"POST {path} {body}", f"{answer.status_code} {answer.text}"
    for path in TOOLSETS:
        for method in ("tools/list", "resources/list", "skills/list", "prompts/list"):
            yield f"{path} {method}", rpc(client, method, path).text
    for text in texts:
        for detail in (False, True):
            found = use_tool(client, "search", query=text, detail=detail, threshold=0)
            yield f"MCP search {text}", found.text
        for tool in ("skill.discovery.search", "Vector.SearchSkills"):
            yield f"MCP {tool} {text}", use_tool(client, tool, "/mcp/skills", query=text).text
        found = use_tool(client, "search", "/mcp/project", searchQuery=text, fuzzySearch=True)
        yield f"MCP project {text}", found.text
    for item in ids:
        yield f"MCP get {item}", use_tool(client, "get", id=item).text
        yield f"MCP call {item}", use_tool(client, "call", tool=item).text
        found = use_tool(client, "explain", "/mcp/explain", query="notes", item=item)
        yield f"MCP explain {item}", found.text
        for uri in (f"skill://{item}/SKILL.md", f"document://{item}", f"tool://{item}"):
            yield f"MCP resource {uri}", rpc(client, "resources/read", uri=uri).text
            yield f"MCP skill {uri}", rpc(client, "skills/get", uri=uri).text


@contextmanager
def key_client(running: RunningService, scope: Scope, *groups: str) -> Iterator[TestClient]:
    """A client whose key has a scope and groups."""
    file = running.project.parent / "keys.json"
    token = Keys(file).create("-".join((scope, *groups)), scope, groups)
    with running.client(address="192.0.2.7", keys=str(file)) as client:
        client.headers.update(bearer(token))
        yield client


def misspelt(word: str) -> list[str]:
    """Forms of a word that resemble it but do not contain it."""
    swapped = f"{word[:4]}{word[5]}{word[4]}{word[6:]}"
    return [word[:-2], swapped, f"{word[:6]} {word[6:]}", word[3:-1]]


@pytest.mark.parametrize("seed", range(2))
def test_no_answer_has_a_word_of_a_hidden_source(tmp_path: Path, seed: int) -> None:
    """Callers who can see everything have just asked for the same."""
    chance = random.Random(seed)
    project = tmp_path / "project"
    maker = Maker(seed, project)
    kinds = ["skills", "documents", "tools"]
    made = [maker.source(kind, is_hidden=hidden) for kind in kinds for hidden in (False, True)]
    made += [maker.source(chance.choice(kinds), is_hidden=chance.random() < 0.7) for _ in "abc"]
    chance.shuffle(made)
    config = write(project / "repertory.toml", toml(made))
    hidden = [one for one in made if one.is_hidden]
    words = [word for one in hidden for word in one.words]
    secret = re.compile("|".join(words))
    texts = [f"{verb} {thing}" for verb, thing in zip(VERBS, THINGS, strict=True)]
    texts += [form for word in chance.sample(words, 3) for form in misspelt(word)]
    with RunningService(project, config=config, allow_calls=True) as running:
        withheld = [item for one in made if "trust" in one.entry for item in one.ids]
        running.scan(*withheld)
        with (
            key_client(running, Scope.ADMIN) as admin,
            key_client(running, Scope.CALL, "red") as member,
            key_client(running, Scope.CALL, "green") as client,
        ):
            for other in (admin, member):
                assert any(secret.search(text) for _, text in answers(other, made[:3], texts[:8]))
            for request, text in answers(client, made, texts):
                found = {one for one in secret.findall(text) if one not in request}
                assert not found, (request, found, text)
