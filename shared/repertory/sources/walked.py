"""The result of the last walk through a folder, updated when a part of it is walked again."""

import os
from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path

from repertory.sources.reading.files import Found
from repertory.sources.reading.walk import Walk
from repertory.system.files import identity
from repertory.system.paths import is_inside, listed_path, place_in
from repertory.text import clean


class Walked:
    """The folders and wanted files below a root. Places are relative to it, with ``/``.

    Attributes:
        files: The places of all wanted files.
        folders: The places of all listed folders.
        problems: See ``Walk``.
        unlisted: See ``Walk``.
        linked: The names of all links, and of their targets.
    """

    def __init__(self, root: Path, walk: Walk) -> None:
        self._root = str(root)
        self._real = listed_path(root)
        self._identity = identity(self._root)
        self._links = [(place, place_in(self._real, real)) for place, real in walk.links.items()]
        self._too_deep = walk.too_deep
        self._is_cut = walk.is_cut
        self.files = Places(file.place for file in walk.files)
        self.folders = Places(self._listed(walk))
        self.problems = walk.problems
        self.unlisted = walk.unlisted
        paths = (*walk.links.keys(), *walk.links.values())
        self.linked = frozenset(path.rpartition("/")[2] for path in paths)

    def path(self, place: str) -> str:
        """The path of a place."""
        return os.path.join(self._root, place) if place else self._root  # noqa: PTH118 - speed

    def found(self, place: str) -> Found:
        """The file at a place."""
        return Found(place, self.path(place), self._real)

    @property
    def is_there(self) -> bool:
        """Whether the root is still the same folder, on the same disk."""
        return not self._is_cut and identity(self._root) == self._identity

    def unit(self, place: str) -> str:
        """The place to walk again for a change at a place; empty for the root.

        It is the place itself if its folder was listed, otherwise the topmost parent that was not.
        """
        while place:
            folder = place.rpartition("/")[0]
            if folder in self.folders:
                break
            place = folder
        return place

    def may_replace(self, unit: str, walk: Walk) -> bool:
        """Whether a new walk at a place suffices after a change there.

        It does not if links lead from this place to another, or from another to this one.
        """
        if walk.links or walk.too_deep or walk.is_cut:
            return False
        places = [*self._too_deep]
        for link, target in self._links:
            places += [link] if target is None else [link, target]
        return not any(_is_related(unit, place) for place in places)

    def replace(self, unit: str, walk: Walk) -> set[str]:
        """Replace the part at a place with a new walk.

        Returns:
            The places of the wanted files there, both current and former.
        """
        before = self.files.under(unit)
        self.files.replace(unit, [file.place for file in walk.files])
        self.folders.replace(unit, self._listed(walk))
        path = clean(self.path(unit))
        self.problems = [one for one in self.problems if not is_inside(one.path, path)]
        self.problems += walk.problems
        self.problems.sort(key=lambda problem: problem.path)
        others = [place for place in self.unlisted if not is_inside(f"/{place}", f"/{unit}")]
        self.unlisted = sorted([*others, *walk.unlisted])
        return {*before, *self.files.under(unit)}

    def _listed(self, walk: Walk) -> list[str]:
        return [path[len(self._root) :].lstrip("/") for path in walk.listed]


class Places:
    """A sorted list of places, with quick access to those at and below a place."""

    def __init__(self, places: Iterable[str]) -> None:
        self._places = sorted(places)

    def __contains__(self, place: str) -> bool:
        at = self._at(place)
        return at < len(self._places) and self._places[at] == place

    def under(self, place: str) -> list[str]:
        """The place itself, if present, and those below it."""
        below = self._places[self._at(f"{place}/") : self._at(f"{place}0")]  # 0 follows the slash
        return [place, *below] if place in self else below

    def replace(self, place: str, places: list[str]) -> None:
        """Replace the place itself and those below it."""
        below = sorted(one for one in places if one != place)
        self._places[self._at(f"{place}/") : self._at(f"{place}0")] = below
        at = self._at(place)
        self._places[at : at + (place in self)] = [place] if place in places else []

    def _at(self, place: str) -> int:
        return bisect_left(self._places, place)


def outermost(places: Iterable[str]) -> list[str]:
    """The places that are not below another one."""
    found: list[str] = []
    for place in sorted(places, key=lambda one: one.split("/")):
        if not found or not is_inside(f"/{place}", f"/{found[-1]}"):
            found.append(place)
    return found


def _is_related(place: str, other: str) -> bool:
    one, two = f"/{place}", f"/{other}"
    return is_inside(one, two) or is_inside(two, one)
