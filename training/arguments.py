"""The arguments of the programs here: paths, each with what it is for."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path


def paths(about: str | None, **purposes: str) -> list[Path]:
    """The paths that the program was given; a missing one ends it with its usage."""
    parser = ArgumentParser(description=about, formatter_class=RawDescriptionHelpFormatter)
    for name, purpose in purposes.items():
        parser.add_argument(name, type=Path, help=purpose)
    given = parser.parse_args()
    return [getattr(given, name) for name in purposes]
