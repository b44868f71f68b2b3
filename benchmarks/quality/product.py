"""Runs the product's commands and reads their JSON."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

SUCCESS = (0, 3)  # exit codes; 3 means that some items could not be read
OWN_PREFIXES = ("REPERTORY_", "TOOLSCRIPT_")  # of variables that would change the figures
NO_MODEL = "no/such-model"  # an unavailable model leaves an index of words alone


class Product:
    """The command line, without the user's settings, with indexes that stay for the next run.

    Args:
        cache: The folder of all indexes, sets and projects.
        model: The embedding model.
    """

    def __init__(self, cache: Path, model: str) -> None:
        self.cache = cache.resolve()
        self.model = model

    def ask(self, *words: str, directory: Path | None = None, has_model: bool = True) -> Any:  # noqa: ANN401 - any JSON
        """Run a command with ``--output json`` and return what it prints.

        Args:
            words: The command and its arguments.
            directory: Its working directory.
            has_model: Whether it finds the model; else it searches words alone, in a temporary
                index.
        """
        print(f"repertory {words[0]} …", file=sys.stderr)
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(OWN_PREFIXES)
        }
        environment["XDG_CONFIG_HOME"] = str(self.cache / "no-configuration")
        if not has_model:
            environment["HF_HUB_OFFLINE"] = "1"
        with tempfile.TemporaryDirectory(prefix="repertory-eval-") as temporary:
            data, model = (
                (str(self.cache / "data"), self.model) if has_model else (temporary, NO_MODEL)
            )
            options = ("--data-dir", data, "--model", model, "--output", "json")
            done = subprocess.run(
                [sys.executable, "-m", "repertory_admin", *words, *options],
                cwd=directory or self.cache,
                env=environment,
                stdout=subprocess.PIPE,
                check=False,
            )
        if done.returncode not in SUCCESS:
            raise SystemExit(f"repertory {words[0]} failed; see above.")
        return msgspec.json.decode(done.stdout)

    def folder(self, *parts: str) -> Path:
        """Make a folder in the cache."""
        made = self.cache.joinpath(*parts)
        made.mkdir(parents=True, exist_ok=True)
        return made

    def labelled(
        self,
        name: str,
        corpus: Iterable[dict[str, Any]],
        queries: Iterable[dict[str, Any]],
        right: Iterable[tuple[str, str]],
    ) -> str:
        """Write a labelled set of items, queries, and the right item of each query; its folder."""
        folder = self.folder("sets", name)
        judgements = ({"query_id": query, "item_id": item} for query, item in right)
        for file, rows in (("corpus", corpus), ("queries", queries), ("qrels", judgements)):
            lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
            (folder / f"{file}.jsonl").write_bytes(lines)
        return str(folder)


def rows(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of JSON lines."""
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines() if line.strip()]
