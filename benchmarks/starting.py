"""A search from a cold shell against a bare script; `--help` against a bare interpreter."""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from benchmarks.indexing import MODEL, environment
from benchmarks.measure import Figure, medians
from repertory.embedding.folder import Format
from repertory.embedding.weights import resolve

ROUNDS = 11
FILES = 10_000  # that each search compares with those of the search before
QUERY = "find files containing specific text"
HELP_BEYOND = 0.4  # seconds

BARE = """
    import sys
    import numpy as np
    import onnxruntime
    from tokenizers import Tokenizer
    session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(sys.argv[2])
    tokenizer.no_padding()
    ids = np.array([tokenizer.encode(sys.argv[3]).ids])
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids)}
    print(session.run(None, feed)[0].mean(1)[0, :3])
"""


def _add_files(folder: Path) -> None:
    """Write files that a source reads and that offer nothing."""
    for number in range(FILES):
        place = folder / f"{number % 100}" / f"{number}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("{}", "utf-8")


def run(folder: Path) -> list[Figure]:
    """Start whole processes, in turn, on the index that the indexing benchmark left."""
    data, project = folder / "data", folder / "project"
    weights = resolve(MODEL, Format.ONNX, data)
    command = Path(sys.executable).with_name("repertory")

    _add_files(project / "tools" / "other")

    def start(*words: str) -> None:
        done = subprocess.run(
            words, cwd=project, env=environment(folder), capture_output=True, check=False
        )
        assert done.returncode in (0, 1), done.stderr.decode()

    works: list[Callable[[], object]] = [
        lambda: start(str(command), "search", QUERY),
        lambda: start(
            sys.executable,
            "-c",
            textwrap.dedent(BARE),
            str(weights.file),
            str(weights.tokenizer),
            QUERY,
        ),
        lambda: start(str(command), "--help"),
        lambda: start(sys.executable, "-c", "pass"),
    ]
    for work in works:
        work()
    search, bare, help_page, interpreter = medians(works, ROUNDS)
    return [
        Figure(
            name=f"`repertory search` from a cold shell, with {FILES:,} files to compare",
            ours=search,
            other=bare,
            against="a bare script that embeds one query",
            unit="s",
            target=1.4,
        ),
        Figure(
            name="`repertory --help`",
            ours=help_page,
            other=interpreter + HELP_BEYOND,
            against=f"a bare interpreter and {HELP_BEYOND} s",
            unit="s",
            target=1.0,
        ),
    ]
