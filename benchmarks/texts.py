"""Real English texts available on every machine: the docstrings of Python's library and NumPy."""

import importlib
import inspect
import itertools
import random
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

MODULES = """argparse array ast asyncio base64 bisect calendar cmath codecs collections configparser
contextlib copy csv dataclasses datetime decimal difflib dis doctest email enum filecmp fileinput
fnmatch fractions ftplib functools getpass gettext glob graphlib gzip hashlib heapq hmac html http
imaplib importlib inspect io ipaddress itertools json keyword linecache locale logging lzma mailbox
math mimetypes multiprocessing numbers operator os pathlib pickle pickletools platform plistlib
poplib pprint profile pstats queue random re sched secrets select selectors shelve shlex shutil
signal smtplib socket socketserver sqlite3 ssl stat statistics string struct subprocess symtable
sysconfig tabnanny tarfile tempfile textwrap threading timeit token tokenize trace traceback types
typing unittest urllib.parse urllib.request uuid venv wave weakref xml.dom xml.sax xmlrpc.client
zipfile zipimport zlib numpy numpy.linalg numpy.random
numpy.fft""".split()  # noqa: SIM905 -- a list of literals would be harder to read


@cache
def documented() -> tuple[tuple[str, str], ...]:
    """The name and the documentation of every function and class, in a fixed order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # some listed modules are deprecated
        return _documented()


def _documented() -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name, value in sorted(vars(module).items(), key=lambda pair: pair[0]):
            members = vars(value).items() if inspect.isclass(value) else ()
            for label, one in ((name, value), *((f"{name}_{k}", v) for k, v in sorted(members))):
                text = inspect.getdoc(one) if callable(one) else None
                if text and len(text) > 60 and not label.startswith("_"):
                    found.setdefault(text, f"{module_name.replace('.', '_')}_{label}")
    return tuple((name, " ".join(text.split())) for text, name in found.items())


def descriptions(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Names and texts similar to names and descriptions of tools.

    Texts are cut at 400 characters. Once all are used, further ones combine two texts.
    """
    chosen = random.Random(seed)
    pool = list(documented())
    chosen.shuffle(pool)
    pairs = itertools.chain(pool, _mixed(pool, chosen))
    return [(name, text[:400]) for name, text in itertools.islice(pairs, count)]


def _mixed(pool: list[tuple[str, str]], chosen: random.Random) -> Iterator[tuple[str, str]]:
    for number in itertools.count():
        (first, one), (second, two) = chosen.sample(pool, 2)
        yield f"{first}_{second.rsplit('_', 1)[-1]}_{number}", f"{one[:200]} {two[:200]}"


def write_tools(folder: Path, count: int) -> None:
    """Write JSON files that list ``count`` tools in total, spread over ten servers."""
    folder.mkdir(parents=True, exist_ok=True)
    named = descriptions(count)
    for server in range(10):
        tools = [
            {
                "name": name[:120],
                "description": text,
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string", "description": text[:60]},
                        "limit": {"type": "integer", "description": "How many, at most."},
                    },
                    "required": ["path"],
                },
            }
            for name, text in named[server::10]
        ]
        (folder / f"server{server}.json").write_bytes(msgspec.json.encode({"tools": tools}))


def write_files(folder: Path, count: int) -> None:
    """Write JSON files that a source of tools must read although they list no tools."""
    for number in range(count):
        file = folder / f"{number % 100}" / f"{number}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"{}")


def questions(count: int) -> list[str]:
    """Queries of a few adjacent words of a text; some have two letters swapped."""
    chosen = random.Random(2)
    asked = []
    for _, text in descriptions(count, seed=2):
        words = [word for word in text.split() if word.isalpha()][:14] or ["file"]
        picked = words[chosen.randrange(max(1, len(words) - 6)) :][:6]
        if chosen.random() < 0.3:
            word = max(picked, key=len)
            picked[picked.index(word)] = word[:2] + word[3:4] + word[2:3] + word[4:]
        asked.append(" ".join(picked))
    return asked
