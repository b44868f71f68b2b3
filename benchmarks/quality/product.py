"""Run the product's commands and read their JSON."""

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.processes import environment
from repertory.data_directory import TRUSTED
from repertory.local.one_shot import Repertory
from repertory.search.query import query_of
from repertory.settings import PROJECT_FILE, Settings, load
from repertory.trust import TrustStore
from repertory_eval.evaluate import found
from repertory_eval.measure import Found

SUCCESS = (0, 3)  # exit codes; 3 means that some items could not be read
NO_MODEL = "no/such-model"  # with an unavailable model, the index has only keywords


class Product:
    """The command line without the user's settings; indexes are reused in the next run.

    Args:
        cache: The folder of all indexes, sets and projects.
        model: The embedding model.
    """

    def __init__(self, cache: Path, model: str) -> None:
        self.cache = cache.resolve()
        self.cache.mkdir(parents=True, exist_ok=True)
        self.model = model

    def ask(self, *words: str, directory: Path | None = None, has_model: bool = True) -> Any:  # noqa: ANN401 - any JSON
        """Run a command with ``--output json`` and return its output.

        Args:
            words: The command and its arguments.
            directory: The working directory.
            has_model: Whether the model is available; without it, the command searches by words
                only, in a temporary index.
        """
        print(f"repertory {words[0]} …", file=sys.stderr)
        variables = environment(self.cache)
        if not has_model:
            variables["HF_HUB_OFFLINE"] = "1"
        with tempfile.TemporaryDirectory(prefix="repertory-eval-") as temporary:
            data, model = (
                (str(self.cache / "data"), self.model) if has_model else (temporary, NO_MODEL)
            )
            if directory and (file := directory / PROJECT_FILE).is_file():
                # Trust is required because the configuration names folders outside its own.
                TrustStore(Path(data, TRUSTED)).trust(file)
            options = ("--data-dir", data, "--model", model, "--output", "json")
            done = subprocess.run(
                [sys.executable, "-m", "repertory_admin", *words, *options],
                cwd=directory or self.cache,
                env=variables,
                stdout=subprocess.PIPE,
                check=False,
            )
        if done.returncode not in SUCCESS:
            raise SystemExit(f"repertory {words[0]} failed; see above.")
        return msgspec.json.decode(done.stdout)

    @contextmanager
    def opened(self, directory: Path) -> Iterator[Repertory]:
        """Open a directory in this process with the same settings, after indexing its changes."""
        with Repertory(self.settings(directory), directory) as repertory:
            repertory.index(words_suffice=True, asks=lambda _: False)
            yield repertory

    def settings(self, directory: Path) -> Settings:
        """The settings of a command in a directory."""
        flags = {"data_dir": str(self.cache / "data"), "model": self.model}
        return load(flags, directory, environment(self.cache))

    def folder(self, *parts: str) -> Path:
        """The path of a folder in the cache, which is created if it is missing."""
        made = self.cache.joinpath(*parts)
        made.mkdir(parents=True, exist_ok=True)
        return made

    def labelled(
        self,
        name: str,
        corpus: Iterable[dict[str, Any]],
        queries: Iterable[dict[str, Any]],
        right: Iterable[tuple[str, str]],
        judgements: Iterable[tuple[str, str, int]] = (),
    ) -> str:
        """Write a labelled set and return its folder.

        Args:
            name: The name of the set.
            corpus: The items.
            queries: The queries.
            right: The right items, as pairs of a query id and an item id.
            judgements: The grades of a judged set: query id, item id, and grade.
        """
        folder = self.folder("sets", name)
        files = {
            "corpus": corpus,
            "queries": queries,
            "qrels": ({"query_id": query, "item_id": item} for query, item in right),
        }
        if judgements:
            files["judgements"] = (
                {"query_id": query, "item_id": item, "grade": grade}
                for query, item, grade in judgements
            )
        for file, rows in files.items():
            lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
            (folder / f"{file}.jsonl").write_bytes(lines)
        return str(folder)


def hits(repertory: Repertory, text: str, *, limit: int) -> list[Found]:
    """Search with the default threshold; each hit is the ids of an item and its duplicates."""
    query = query_of(repertory.settings.values, text, limit=limit)
    return found(repertory.search(query))


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file."""
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines() if line.strip()]
