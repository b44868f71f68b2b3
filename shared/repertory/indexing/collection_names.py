"""The names of collections and aliases. A slug is a model's short name.

Every name begins with its namespace, so several catalogues can share a store.
"""

import hashlib
import os
import re
from pathlib import Path

from repertory.catalogue.views import RECIPE
from repertory.index.vectors import VectorStore
from repertory.values import NAMESPACE_PATTERN

_HASH = "[0-9a-f]{16}"  # of a configuration, a directory or a sandbox
_INDEX = re.compile(rf"{NAMESPACE_PATTERN}_{_HASH}_(.+)-r\d+_g\d+")
_CACHE = re.compile(rf"{NAMESPACE_PATTERN}_vectors_(.+)")
_CONFIGURATION = re.compile(rf"{NAMESPACE_PATTERN}_({_HASH})_")
# Groups: the alias of a directory, the directory's key, and a configuration.
_ALIAS = re.compile(rf"({NAMESPACE_PATTERN}_({_HASH}))(?:_({_HASH})_next)?")
_SANDBOX = re.compile(rf"{NAMESPACE_PATTERN}_sandbox_({_HASH})_.+")


def namespace_of(name: str) -> str:
    """The namespace of a collection or an alias."""
    return name.partition("_")[0]


def alias_name(namespace: str, configuration: str) -> str:
    """The alias of a configuration, by its hash."""
    return f"{namespace}_{configuration}"


def next_alias(active: str, configuration: str) -> str:
    """The alias of the target collection of a configuration.

    During a build, the target is not the active collection.

    Args:
        active: The alias of the collection that is searched. Commands and servers that search
            different collections do not change each other's target.
        configuration: The configuration hash.
    """
    return f"{active}_{configuration}_next"


def alias_parts(alias: str) -> tuple[str, str, str]:
    """Split an alias into the alias of its directory, and two digests; missing parts are empty.

    The first digest is the directory's key, or for the alias of a configuration its hash. The
    second one is the configuration hash of a ``next_alias``.
    """
    found = _ALIAS.fullmatch(alias)
    own, key, configuration = found.groups("") if found else ("", "", "")
    return own, key, configuration


def is_of_directory(alias: str, collection: str) -> bool:
    """Whether an alias of a collection belongs to a directory, not to its configuration."""
    own, _, _ = alias_parts(alias)
    return bool(own) and alias != alias_name(namespace_of(alias), configuration_of(collection))


def collection_name(namespace: str, configuration: str, slug: str, generation: int) -> str:
    """The name of a collection. It has the model and recipe, which never mix in a collection."""
    return f"{_prefix(namespace, configuration, slug)}{generation}"


def current(store: VectorStore, namespace: str, configuration: str, slug: str) -> str | None:
    """The collection of a configuration and model: the alias's, else the newest; None if missing.

    The alias may point to another model's collection. Going back to an earlier model finds that
    model's collection unchanged.
    """
    prefix = _prefix(namespace, configuration, slug)
    aliased = store.alias(alias_name(namespace, configuration))
    if aliased and aliased.startswith(prefix):
        return aliased
    return max(generations(store, namespace, configuration, slug), key=generation_of, default=None)


def is_complete(store: VectorStore, active: str) -> bool:
    """Whether there is a complete active collection.

    A first index is active while it is built. The configuration's own alias is set at its end.
    """
    name = store.alias(active)
    if name is None:
        return False
    return store.alias(alias_name(namespace_of(name), configuration_of(name))) is not None


def generations(store: VectorStore, namespace: str, configuration: str, *slugs: str) -> list[str]:
    """All collections of a configuration and any of the models."""
    prefixes = tuple(_prefix(namespace, configuration, slug) for slug in slugs)
    return [name for name in store.collections() if name.startswith(prefixes)]


def generation_of(collection: str) -> int:
    """The number of a collection's generation."""
    found = re.search(r"_g(\d+)$", collection)
    return int(found[1]) if found else 0


def recipe_of(collection: str) -> int:
    """The embedding recipe of a collection's vectors; 0 if its name has none."""
    found = re.search(r"-r(\d+)_g\d+$", collection)
    return int(found[1]) if found else 0


def is_writable(collection: str, slug: str) -> bool:
    """Whether a collection has this model and this release's recipe."""
    return model_slug(collection) == slug and recipe_of(collection) == RECIPE


def is_newer(collection: str) -> bool:
    """Whether the embedding recipe of a collection is from a newer release."""
    return recipe_of(collection) > RECIPE


def is_older(collection: str) -> bool:
    """Whether an index has the embedding recipe of an earlier release."""
    return is_index(collection) and recipe_of(collection) < RECIPE


def differ_in_generation(collection: str, other: str) -> bool:
    """Whether two collections are different generations of the same configuration and model."""
    prefixes = {name.rpartition("_g")[0] for name in (collection, other)}
    return collection != other and len(prefixes) == 1


def is_index(name: str) -> bool:
    """Whether a collection is the index of a catalogue; others hold cached or single vectors."""
    return bool(model_slug(name))


def model_slug(collection: str) -> str:
    """The slug of the model whose vectors a collection holds."""
    found = _INDEX.fullmatch(collection)
    return found[1] if found else ""


def cached_slug(collection: str) -> str:
    """The slug of the model whose vectors a team's cache holds; empty for an index."""
    found = _CACHE.fullmatch(collection)
    return found[1] if found else ""


def configuration_of(collection: str) -> str:
    """The configuration hash that a collection is named after."""
    found = _CONFIGURATION.match(collection)
    return found[1] if found else ""


def sandbox_name(namespace: str, sandbox: str | Path, slug: str, recipe: int) -> str:
    """The name of the collection of a sandbox's skill files.

    It ends like a generation for compatibility; the number is the recipe of ``skill_vectors``.
    """
    return f"{namespace}_sandbox_{sandbox_key(sandbox)}_{slug}_g{recipe}"


def sandbox_key(sandbox: str | Path) -> str:
    """A digest of a sandbox's path, in 16 hex digits."""
    return hashlib.sha256(os.fsencode(sandbox)).hexdigest()[:16]


def sandbox_of(collection: str) -> str:
    """The key of the sandbox whose files a collection holds; empty for other collections."""
    found = _SANDBOX.fullmatch(collection)
    return found[1] if found else ""


def _prefix(namespace: str, configuration: str, slug: str) -> str:
    return f"{alias_name(namespace, configuration)}_{slug}-r{RECIPE}_g"
