"""Writes the held-out part of the set `written`, for `repertory eval`.

    python -m training.heldout ../shared/data/retrieval/written build/written-test

Its corpus is complete, so the right items compete with those used in training.
"""

import json
import shutil
import sys
from pathlib import Path

from training.arguments import paths, refuse
from training.dataset import SET, Part, items, only, queries


def write(whole: Path, part: Path) -> int:
    """Write the held-out part of a set into a folder.

    Args:
        whole: The folder of the set `written`.
        part: The folder to write.

    Returns:
        The number of held-out queries; if it is 0, nothing is written.
    """
    of = items()
    test = {query.item for query in only(Part.TEST, queries(), of)}
    grades = (whole / "qrels.jsonl").read_text("utf-8").splitlines(keepends=True)
    kept = [line for line in grades if json.loads(line)["item_id"] in test]
    asked = {json.loads(line)["query_id"] for line in kept}
    texts = (whole / "queries.jsonl").read_text("utf-8").splitlines(keepends=True)
    chosen = [line for line in texts if json.loads(line)["id"] in asked]
    if chosen:
        part.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(whole / "corpus.jsonl", part / "corpus.jsonl")
        (part / "qrels.jsonl").write_text("".join(kept), "utf-8")
        (part / "queries.jsonl").write_text("".join(chosen), "utf-8")
    return len(chosen)


def main() -> int:
    """Write the held-out queries of the set `written`."""
    whole, part = paths(__doc__, whole="the set `written`", part="the folder for its test")
    if lacking := [name for name in SET if not (whole / name).is_file()]:
        refuse(f"{whole} lacks {', '.join(lacking)}; give the folder of the set `written`.")
    count = write(whole, part)
    if not count:
        refuse(f"No query of {whole} is left out of training; give the set `written`.")
    print(f"{count} queries in {part}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
