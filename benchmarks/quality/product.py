"""Runs the product's own commands and reads the JSON that they print."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

DONE = (0, 3)  # exit codes; 3 says that some items could not be read
OURS = ("REPERTORY_", "TOOLSCRIPT_")  # variables that would change what is measured
NO_MODEL = "nobody/none"  # a model that cannot be had leaves an index of words alone


class Product:
    """The command line, with settings of nobody and indexes that are kept for the next time.

    Args:
        kept: Where all is kept that is made here.
        model: The embedding model.
    """

    def __init__(self, kept: Path, model: str) -> None:
        self.kept = kept.resolve()
        self.model = model

    def ask(self, *words: str, directory: Path | None = None, has_model: bool = True) -> Any:  # noqa: ANN401 - whatever the command prints
        """What a command prints with ``--output json``.

        Args:
            words: The command and its arguments.
            directory: Where it runs.
            has_model: Whether it finds the model; else words alone are searched, in an index that
                is not kept.
        """
        print(f"repertory {words[0]} …", file=sys.stderr)
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(OURS)
        }
        environment["XDG_CONFIG_HOME"] = str(self.kept / "no-configuration")
        if not has_model:
            environment["HF_HUB_OFFLINE"] = "1"
        with tempfile.TemporaryDirectory(prefix="repertory-eval-") as passing:
            data, model = (
                (str(self.kept / "data"), self.model) if has_model else (passing, NO_MODEL)
            )
            options = ("--data-dir", data, "--model", model, "--output", "json")
            done = subprocess.run(
                [sys.executable, "-m", "repertory_admin", *words, *options],
                cwd=directory or self.kept,
                env=environment,
                stdout=subprocess.PIPE,
                check=False,
            )
        if done.returncode not in DONE:
            raise SystemExit(f"repertory {words[0]} failed; see above.")
        return msgspec.json.decode(done.stdout)

    def folder(self, *parts: str) -> Path:
        """A folder for what is made here."""
        made = self.kept.joinpath(*parts)
        made.mkdir(parents=True, exist_ok=True)
        return made

    def labelled(
        self,
        name: str,
        corpus: Iterable[dict[str, Any]],
        queries: Iterable[dict[str, Any]],
        right: Iterable[tuple[str, str]],
    ) -> str:
        """A labelled set that is made here: its items, its queries, and the item of each query."""
        folder = self.folder("sets", name)
        judgements = ({"query_id": query, "item_id": item} for query, item in right)
        for file, rows in (("corpus", corpus), ("queries", queries), ("qrels", judgements)):
            lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
            (folder / f"{file}.jsonl").write_bytes(lines)
        return str(folder)


def rows(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of JSON lines."""
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines() if line.strip()]
