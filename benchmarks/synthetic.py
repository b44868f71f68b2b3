"""Generated items with the statistics of real catalogues, and generated vectors.

The parameters were fitted to 870 tools of real MCP servers and 2,155 real skills. Text lengths are
log-normal; word frequencies follow a piecewise power law of the rank with three pieces. Every tenth
item is a skill with a body.
"""

import hashlib
import itertools
import random
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.texts import documented
from repertory.catalogue.item import Item, Kind
from repertory.embedding.models import Model
from repertory.index.cache import VectorCache, vector_key
from repertory.indexing.scan import scan_source
from repertory.project.workspace import Workspace

TOOLS_OF_A_SERVER = 36  # 870 tools of 24 servers
SKILLS_SHARE = 10  # one item in 10 is a skill
# Mean and deviation of the logarithm of a text's number of words; the median tool has 28 words.
TOOL_WORDS, SKILL_WORDS, BODY_WORDS = (3.32, 1.06), (2.87, 1.21), (6.3, 1.12)
PARAMETER_WORDS = (2.0, 0.5)
MAX_WORDS = 3_000
NAME_PARTS = (2,) * 30 + (3,) * 42 + (4,) * 24 + (5,) * 4  # the number of parts of 100 names
VOCABULARY = 40_000  # common words; NEW_WORDS adds more with each item
NEW_WORDS = 0.4  # mean number of words unique to an item: identifiers, brands, typos
CENTRES = 2_000  # topics around which the vectors lie
SPREAD = 0.7
BATCH = 2_000  # vectors stored per write

_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    """The words, most frequent first, and their cumulative frequencies."""
    found: dict[str, int] = {}
    for _, text in documented():
        for word in text.lower().split():
            if word.isascii() and word.isalpha():
                found[word] = found.get(word, 0) + 1
    words = sorted(found, key=lambda word: (-found[word], word))
    words += itertools.islice(made_up(random.Random(5)), VOCABULARY - len(words))
    ranks = np.arange(1, len(words) + 1, dtype=np.float64) + 1
    slopes = np.where(ranks < 100, 0.59, np.where(ranks < 1_000, 0.86, 1.56))
    steps = slopes[1:] * np.diff(np.log(ranks))
    frequencies = np.exp(-np.concatenate([[0.0], np.cumsum(steps)]))
    return words, np.cumsum(frequencies).tolist()


def made_up(chosen: random.Random) -> Iterator[str]:
    """Generate distinct pronounceable words without end."""
    seen: set[str] = set()
    while True:
        word = "".join(chosen.choices(_SYLLABLES, k=chosen.randint(2, 4)))
        if word not in seen:
            seen.add(word)
            yield word


def write_items(project: Path, count: int) -> None:
    """Write a project with ``count`` tools and skills in total."""
    chosen = random.Random(1)
    skills = count // SKILLS_SHARE
    for number in range(skills):
        name, text = _name(chosen, "-", number), _text(chosen, SKILL_WORDS)
        folder = project / "skills" / f"{number // 1_000}" / name
        folder.mkdir(parents=True)
        head = f"---\nname: {name}\ndescription: {text}\n---\n"
        (folder / "SKILL.md").write_text(head + _body(chosen), "utf-8")
    (project / "tools").mkdir(parents=True)
    for server, start in enumerate(range(skills, count, TOOLS_OF_A_SERVER)):
        numbers = range(start, min(start + TOOLS_OF_A_SERVER, count))
        tools = [_tool(chosen, number) for number in numbers]
        content = msgspec.json.encode({"tools": tools})
        (project / "tools" / f"{_word(chosen)}{server}.json").write_bytes(content)


def items(count: int, seed: int = 1) -> Iterator[Item]:
    """Generate items like the ones that ``write_items`` writes, but without files."""
    chosen = random.Random(seed)
    for number in range(count):
        if number % SKILLS_SHARE == 0:
            name, text = _name(chosen, "-", number), _text(chosen, SKILL_WORDS)
            yield Item(
                id=f"skills/{name}",
                kind=Kind.SKILL,
                name=name,
                source="skills",
                description=text,
                body=_body(chosen),
            )
        else:
            tool, server = _tool(chosen, number), f"server{number // TOOLS_OF_A_SERVER}"
            yield Item(
                id=f"{server}__{tool['name']}",
                kind=Kind.TOOL,
                name=str(tool["name"]),
                source=server,
                server=server,
                description=str(tool["description"]),
                input_schema=tool["inputSchema"],  # type: ignore[arg-type]  # made above
            )


def _tool(chosen: random.Random, number: int) -> dict[str, object]:
    names = dict.fromkeys(_word(chosen) for _ in range(chosen.randint(1, 6)))
    types = [{"type": "string", "description": _text(chosen, PARAMETER_WORDS)} for _ in names]
    properties = dict(zip(names, types, strict=True))
    return {
        "name": _name(chosen, "_", number),
        "description": _text(chosen, TOOL_WORDS),
        "inputSchema": {"type": "object", "properties": properties},
    }


def _body(chosen: random.Random) -> str:
    words = _text(chosen, BODY_WORDS).split()
    parts = (words[start : start + 120] for start in range(0, len(words), 120))
    return "\n\n".join(f"## {' '.join(part[:3])}\n\n{' '.join(part)}" for part in parts) + "\n"


def _name(chosen: random.Random, separator: str, number: int) -> str:
    parts = [_word(chosen) for _ in range(chosen.choice(NAME_PARTS) - 1)]
    return separator.join([*parts, str(number)])[-60:].lstrip(separator)


def _word(chosen: random.Random) -> str:
    """A word for a name, except the most frequent words, which are mostly function words."""
    words, _ = _vocabulary()
    return words[int(100 * (len(words) / 100) ** chosen.random()) - 1]


def _text(chosen: random.Random, length: tuple[float, float]) -> str:
    words, frequencies = _vocabulary()
    count = max(2, min(MAX_WORDS, round(chosen.lognormvariate(*length))))
    picked = chosen.choices(words, cum_weights=frequencies, k=count)
    if chosen.random() < NEW_WORDS:
        picked[-1] = "".join(chosen.choices(_SYLLABLES, k=5))
    return " ".join(picked).capitalize() + "."


def questions(count: int, seed: int = 2) -> list[str]:
    """Queries of three to eight words from the same vocabulary."""
    chosen = random.Random(seed)
    return [" ".join(_word(chosen) for _ in range(chosen.randint(3, 8))) for _ in range(count)]


def store_vectors(workspace: Workspace, model: Model, cache: VectorCache) -> int:
    """Store a generated vector for each text of a project, and return the number of vectors."""
    keys = _keys(workspace, model)
    total = 0
    while batch := list(itertools.islice(keys, BATCH)):
        cache.put(dict(zip(batch, vectors(batch, model.dimension), strict=True)))
        total += len(batch)
    return total


def _keys(workspace: Workspace, model: Model) -> Iterator[bytes]:
    for source in workspace.catalogue().sources:
        if scan := scan_source(source).scan:
            for item in scan.items:
                for view in item.views():
                    yield vector_key(model, view.text)


def vectors(keys: Iterable[bytes], dimension: int) -> NDArray[np.float32]:
    """Unit vectors around the topics; equal keys give equal vectors."""
    seeds = [int.from_bytes(hashlib.blake2b(key, digest_size=8).digest()) for key in keys]
    noise = np.stack([np.random.default_rng(seed).normal(size=dimension) for seed in seeds])
    made = _centres(dimension)[[seed % CENTRES for seed in seeds]] + SPREAD * noise
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return np.asarray(made, np.float32)


@cache
def _centres(dimension: int) -> NDArray[np.float64]:
    return np.random.default_rng(4).normal(size=(CENTRES, dimension))
