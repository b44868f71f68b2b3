"""The command-line arguments of the training programs: paths with their purposes."""

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import NoReturn


def paths(about: str | None, **purposes: str) -> list[Path]:
    """The paths given to the program; if one is missing, exit and print the usage."""
    parser = ArgumentParser(description=about, formatter_class=RawDescriptionHelpFormatter)
    for name, purpose in purposes.items():
        parser.add_argument(name, type=Path, help=purpose)
    given = parser.parse_args()
    return [getattr(given, name) for name in purposes]


def refuse(message: str) -> NoReturn:
    """Exit with a message about invalid input."""
    print(message, file=sys.stderr)
    raise SystemExit(2)
