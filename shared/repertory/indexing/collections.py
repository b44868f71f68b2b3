"""The names of collections, and which of them is active. A slug is a model's short name."""

import re

from repertory.catalogue.views import RECIPE
from repertory.index.vectors import VectorStore

# The alias of the collection that a team searches, whatever its configuration.
ACTIVE = "repertory"


def alias_name(configuration: str) -> str:
    """The alias of a configuration, by its hash."""
    return f"repertory_{configuration}"


def next_alias(active: str, configuration: str) -> str:
    """The alias of the collection that a configuration's items are being written to.

    It differs from the active collection until that one is complete.

    Args:
        active: The alias of the collection that is searched. Commands and servers that search
            different collections do not move each other's target.
        configuration: The configuration hash.
    """
    return f"{active}_{configuration}_next"


def collection_name(configuration: str, slug: str, generation: int) -> str:
    """The name of a collection: models and recipes never mix in one."""
    return f"{_prefix(configuration, slug)}{generation}"


def current(store: VectorStore, configuration: str, slug: str) -> str | None:
    """The collection of a configuration under a model: the alias's, else the newest, else None.

    The alias may point at another model's collection; going back to a model that was used before
    finds its collection intact.
    """
    prefix = _prefix(configuration, slug)
    aliased = store.alias(alias_name(configuration))
    if aliased and aliased.startswith(prefix):
        return aliased
    return max(generations(store, configuration, slug), key=generation_of, default=None)


def is_complete(store: VectorStore, active: str) -> bool:
    """Whether there is an active collection that was built to the end.

    A first index is active while it is built. The configuration's own alias is set at the end.
    """
    name = store.alias(active)
    return name is not None and store.alias(alias_name(configuration_of(name))) is not None


def generations(store: VectorStore, configuration: str, slug: str) -> list[str]:
    """Every collection of a configuration under a model."""
    prefix = _prefix(configuration, slug)
    return [name for name in store.collections() if name.startswith(prefix)]


def generation_of(collection: str) -> int:
    """The number of a collection's generation."""
    found = re.search(r"_g(\d+)$", collection)
    return int(found[1]) if found else 0


def differ_in_generation(collection: str, other: str) -> bool:
    """Whether two collections are different generations of the same configuration and model."""
    prefixes = {name.rpartition("_g")[0] for name in (collection, other)}
    return collection != other and len(prefixes) == 1


def is_index(name: str) -> bool:
    """Whether a collection is the index of a catalogue; others hold cached or single vectors."""
    return bool(model_slug(name))


def model_slug(collection: str) -> str:
    """The slug of the model whose vectors a collection holds."""
    found = re.fullmatch(r"repertory_[0-9a-f]+_(.+)-r\d+_g\d+", collection)
    return found[1] if found else ""


def configuration_of(collection: str) -> str:
    """The configuration hash that a collection is named after."""
    found = re.match(r"repertory_([0-9a-f]+)_", collection)
    return found[1] if found else ""


def _prefix(configuration: str, slug: str) -> str:
    return f"{alias_name(configuration)}_{slug}-r{RECIPE}_g"
