"""Measure the quality of the ranking and write ``benchmarks/RESULTS.md``."""

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.quality import (
    bodies,
    confidence,
    encoder,
    everyday,
    models,
    names,
    order,
    speed,
    tasks,
    words,
)
from benchmarks.quality.product import Product
from benchmarks.quality.report import Part, markdown
from repertory.settings import PROJECT_FILE

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
CACHE = ROOT / ".eval"
MODEL = "sentence-transformers/all-MiniLM-L6-v2"  # also the model of the baseline

NEEDED = ("retrieval", "tool_schemas", "skills")
CATALOGUE = """\
[[sources]]
type = "tools"
path = '{data}/tool_schemas'

[[sources]]
type = "skills"
path = '{data}/skills'
"""
HEADING = """# How good the ranking is

`make eval` writes this file from public data: labelled sets, real MCP servers' tools and real
skills. Do not edit it. All figures are percentages, some with 95 % intervals, measured through
`repertory eval` and an in-process search with the model `{model}`; only the time of ranking is in
milliseconds. A language model wrote the queries of `written`, and graded the pairs of `judged`."""


class Measured:
    """The product, the data, and the measurements that several parts share.

    Args:
        product: The product.
        data: The data folder.
        queries: The maximum number of queries per labelled set; 0 for all.
    """

    def __init__(self, product: Product, data: Path, queries: int) -> None:
        self.product = product
        self.skills = data / "skills"
        self._data = data
        self.queries = queries
        self.sets = {
            path.parent.name: path.parent for path in data.glob("retrieval/*/corpus.jsonl")
        }
        self.sets = dict(sorted(self.sets.items()))

    @cached_property
    def labelled(self) -> list[dict[str, Any]]:
        """The JSON of `eval` for the labelled sets."""
        asked = self.sets.values()
        options = ("--queries", str(self.queries), "--worst", "0")
        measured: list[dict[str, Any]] = self.product.ask("eval", *map(str, asked), *options)
        return measured

    @cached_property
    def project(self) -> Path:
        """The folder of the catalogue of all real items, which is indexed first."""
        project = self.product.folder("catalogue")
        (project / PROJECT_FILE).write_text(CATALOGUE.format(data=self._data), "utf-8")
        self.product.ask("index", directory=project)
        return project

    @cached_property
    def everyday(self) -> everyday.Outcome:
        """The results of the everyday queries."""
        return everyday.measure(self.product, self.project)


PARTS: Mapping[str, Callable[[Measured], Part]] = {
    "order": lambda of: order.part(of.labelled),
    "confidence": lambda of: confidence.part(of.product, of.sets, of.labelled),
    "models": lambda of: models.part(of.product, of.sets),
    "words": lambda of: words.part(of.product, of.project),
    "everyday": lambda of: everyday.part(of.everyday),
    "encoder": lambda of: encoder.part(
        of.product, of.sets, of.labelled, of.everyday, of.project, of.queries
    ),
    "tasks": lambda of: tasks.part(of.product, of.sets),
    "names": lambda of: names.part(of.product, of.project),
    "bodies": lambda of: bodies.part(of.product, of.sets, of.skills, of.project),
    "speed": lambda of: speed.part(of.product.folder("speed")),
}


def main() -> int:
    """Measure all or the chosen parts; the exit code is 2 if the data is missing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("data", type=Path, help=f"The folder with {', '.join(NEEDED)}.")
    parser.add_argument("--model", default=MODEL, help="The embedding model.")
    parser.add_argument(
        "--queries", type=int, default=0, help="Ask at most so many queries of each labelled set."
    )
    parser.add_argument(
        "--only", choices=PARTS, nargs="+", help="Print these parts and write no file."
    )
    given = parser.parse_args()
    data: Path = given.data.resolve()
    if missing := [name for name in NEEDED if not (data / name).is_dir()]:
        print(
            f"There is no {given.data / missing[0]}; give the folder: make eval DATA=…",
            file=sys.stderr,
        )
        return 2
    measured = Measured(Product(CACHE, given.model), data, given.queries)
    heading = HEADING.format(model=given.model)
    parts: list[Part] = []
    try:
        parts.extend(PARTS[name](measured) for name in given.only or PARTS)
    except BaseException:
        print(markdown(parts, heading))  # so that half an hour of measurements is not lost
        raise
    report = markdown(parts, heading)
    if given.only or given.queries:
        print(report)
        return 0
    RESULTS.write_text(report, "utf-8")
    print(f"wrote {RESULTS.relative_to(ROOT)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
