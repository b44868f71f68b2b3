"""The first and a later search from a cold shell, and `--help`, compared with bare scripts."""

import json
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from benchmarks.indexing import ITEMS, MODEL, environment, index
from benchmarks.measure import Figure, medians
from benchmarks.texts import write_files, write_tools
from repertory.embedding.model_files import Format
from repertory.embedding.weights import resolve
from repertory.local.one_shot import Repertory
from repertory.settings import load

ROUNDS = 11
FIRST_ROUNDS = 3
FILES = 10_000
QUERY = "find files containing specific text"
HELP_BEYOND = 0.4  # seconds
EXAMPLES = Path(__file__).parents[1] / "examples"

# The arguments are the model, its tokenizer, and a file with a list of texts.
BARE = """
    import json
    import sys
    import numpy as np
    import onnxruntime
    from tokenizers import Tokenizer
    session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(sys.argv[2])
    tokenizer.no_padding()
    for text in json.load(open(sys.argv[3])):
        ids = np.array([tokenizer.encode(text).ids[:256]])
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids),
                "token_type_ids": np.zeros_like(ids)}
        print(session.run(None, feed)[0].mean(1)[0, :3])
"""


def run(folder: Path) -> list[Figure]:
    """Measure whole processes, each in turn with its bare counterpart."""
    return [_first(folder), _cold(folder), _help()]


def _first(folder: Path) -> Figure:
    """Search the examples with an empty data directory; the bare script embeds their texts."""
    project, data = folder / "first", folder / "first-data"
    shutil.copytree(EXAMPLES, project)

    def search() -> None:
        shutil.rmtree(data, ignore_errors=True)
        _start(project, environment(folder, data.name), *_search())

    search()
    settings = load({"data_dir": str(data), "model": MODEL}, project, {})
    with Repertory(settings, project) as repertory:
        ids = [entry.id for entry in repertory.engine.keywords.all()]
        items = repertory.engine.items(ids).values()
    texts = [view.text for item in items for view in item.views()]
    bare = _bare(folder, "first-texts.json", [*texts, QUERY])
    ours, other = medians([search, lambda: _start(project, None, *bare)], FIRST_ROUNDS)
    return Figure(
        name=f"first `repertory search`, of {len(ids)} items that are not indexed",
        ours=ours,
        other=other,
        against="a bare script that embeds their texts and the query",
        unit="s",
        target=2.0,
    )


def _cold(folder: Path) -> Figure:
    """Search an index of many files, which the command checks for changes first.

    The vectors come from the cache of the indexing benchmark.
    """
    project = folder / "many"
    write_tools(project / "tools", ITEMS)
    write_files(project / "tools" / "others", FILES)
    index(folder, project.name)
    bare = _bare(folder, "query.json", [QUERY])
    works: list[Callable[[], object]] = [
        lambda: _start(project, environment(folder), *_search()),
        lambda: _start(project, None, *bare),
    ]
    for work in works:
        work()
    ours, other = medians(works, ROUNDS)
    return Figure(
        name=f"`repertory search` from a cold shell, {ITEMS:,} items beside {FILES:,} files",
        ours=ours,
        other=other,
        against="a bare script that embeds one query",
        unit="s",
        target=1.4,
    )


def _help() -> Figure:
    works: list[Callable[[], object]] = [
        lambda: _start(None, None, _command(), "--help"),
        lambda: _start(None, None, sys.executable, "-c", "pass"),
    ]
    for work in works:
        work()
    help_page, interpreter = medians(works, ROUNDS)
    return Figure(
        name="`repertory --help`",
        ours=help_page,
        other=interpreter + HELP_BEYOND,
        against=f"a bare interpreter and {HELP_BEYOND} s",
        unit="s",
        target=1.0,
    )


def _start(folder: Path | None, variables: dict[str, str] | None, *words: str) -> None:
    """Run a command until it exits. Exit code 1 means that nothing was found."""
    done = subprocess.run(words, cwd=folder, env=variables, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr.decode()


def _search() -> tuple[str, ...]:
    return _command(), "search", QUERY


def _command() -> str:
    return str(Path(sys.executable).with_name("repertory"))


def _bare(folder: Path, name: str, texts: list[str]) -> tuple[str, ...]:
    """The command of the bare script, which embeds some texts."""
    weights = resolve(MODEL, Format.ONNX, folder / "data")
    file = folder / name
    file.write_text(json.dumps(texts), "utf-8")
    script = textwrap.dedent(BARE)
    return sys.executable, "-c", script, str(weights.file), str(weights.tokenizer), str(file)
