"""Which item is meant by a URI, as this server lists it."""

from repertory.backend import Backend
from repertory.catalogue.item import Item, Kind
from repertory.catalogue.skill_format import SKILL_FILE
from repertory.errors import UnknownItemError
from repertory.formats.uris import id_of, is_misplaced, is_of_skill, places_of, uri_of


def item_at(backend: Backend, wanted: str) -> Item:
    """The item that has an id, a unique name or a URI.

    Raises:
        UnknownItemError: There is no such item, or the URI is that of a file beside a skill.
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
    """The skill whose file a URI is, and the file's place.

    A file of an inner skill is that skill's. The name of a skill whose folder has another one is no
    part of the place.

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
    item = backend.item(places[0][0])  # mostly an error with suggestions
    raise UnknownItemError(f"{item.id[:200]!r} is {uri_of(item)}.")
