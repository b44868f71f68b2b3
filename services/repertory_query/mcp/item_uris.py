"""Finds the item for a URI as this server lists it."""

from repertory.backend import Backend
from repertory.catalogue.item import Item, Kind
from repertory.catalogue.skill_format import SKILL_FILE
from repertory.errors import UnknownItemError
from repertory.formats.uris import id_of, is_misplaced, is_of_skill, places_of, uri_of


def item_at(backend: Backend, wanted: str) -> Item:
    """The item with this id, unique name or URI.

    Raises:
        UnknownItemError: There is no such item, or the URI names a supporting file of a skill.
    """
    if (item_id := id_of(wanted)) is not None:
        return backend.item(item_id)
    if not is_of_skill(wanted):
        return backend.item(wanted)
    skill, place = skill_at(backend, wanted)
    if place != SKILL_FILE:
        raise UnknownItemError(
            f"{wanted[:200]} is a file of the skill {skill.id}; read it as a resource."
        )
    return backend.item(skill.id)  # the reading of one item counts as its use


def skill_at(backend: Backend, uri: str) -> tuple[Item, str]:
    """The skill to which the file at a URI belongs, and the file's path in its folder.

    A file of a nested skill belongs to the nested skill. If a skill's name differs from its
    folder's, the path does not include the name.

    Raises:
        UnknownItemError: There is no such skill.
    """
    places = places_of(uri)
    if not places:
        raise UnknownItemError(f"There is no resource {uri[:200]!r}; search for it.")
    items = backend.items([item_id for item_id, _ in places])
    for item_id, place in places:
        item = items.get(item_id)
        if item is not None and item.kind is Kind.SKILL:
            return item, place.removeprefix(f"{item.name}/") if is_misplaced(item) else place
    item = backend.item(places[0][0])  # usually raises an error with suggestions
    raise UnknownItemError(f"{item.id[:200]!r} is {uri_of(item)}.")
