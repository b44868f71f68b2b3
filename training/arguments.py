"""The arguments of the programs here: paths, each with what it is for."""

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import NoReturn


def paths(about: str | None, **purposes: str) -> list[Path]:
    """The paths that the program was given; a missing one ends it with its usage."""
    parser = ArgumentParser(description=about, formatter_class=RawDescriptionHelpFormatter)
    for name, purpose in purposes.items():
        parser.add_argument(name, type=Path, help=purpose)
    given = parser.parse_args()
    return [getattr(given, name) for name in purposes]


def refuse(message: str) -> NoReturn:
    """End the program with a message: it was given something that it cannot work on."""
    print(message, file=sys.stderr)
    raise SystemExit(2)
