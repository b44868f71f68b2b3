"""Measures everything and writes ``benchmarks/RESULTS.md``."""

import argparse
import sys
from pathlib import Path

from benchmarks.quality import bodies, confidence, names, order, speed
from benchmarks.quality.product import Product
from benchmarks.quality.report import markdown

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
CACHE = ROOT / ".eval"
MODEL = "sentence-transformers/all-MiniLM-L6-v2"  # of the recipe to beat, too

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

Written by `make eval` from public data: labelled sets, real MCP servers' tools and real skills. Do
not edit it. All figures are percentages, some with 95 % intervals, from `repertory eval` and
`repertory calibrate` with the model `{model}`; only the time of
ranking is in milliseconds."""


def main() -> int:
    """Measure; the exit code is 2 if the data is missing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("data", type=Path, help=f"The folder with {', '.join(NEEDED)}.")
    parser.add_argument("--model", default=MODEL, help="The embedding model.")
    given = parser.parse_args()
    data: Path = given.data.resolve()
    if missing := [name for name in NEEDED if not (data / name).is_dir()]:
        print(
            f"There is no {given.data / missing[0]}; give the folder: make eval DATA=…",
            file=sys.stderr,
        )
        return 2
    product = Product(CACHE, given.model)
    sets = {path.parent.name: path.parent for path in sorted(data.glob("retrieval/*/corpus.jsonl"))}
    project = product.folder("catalogue")
    (project / "repertory.toml").write_text(CATALOGUE.format(data=data), "utf-8")
    product.ask("index", directory=project)
    labelled = product.ask("eval", *map(str, sets.values()), "--worst", "0")
    parts = [
        order.part(labelled),
        confidence.part(product, sets, labelled),
        names.part(product, project),
        bodies.part(product, sets, data / "skills", project),
        speed.part(product.folder("speed")),
    ]
    RESULTS.write_text(markdown(parts, HEADING.format(model=given.model)), "utf-8")
    print(f"wrote {RESULTS.relative_to(ROOT)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
