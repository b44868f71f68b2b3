"""The item: one searchable thing, and the hashes that show whether it changed."""

import hashlib
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol
from uuid import UUID

import msgspec

from repertory.catalogue.policy import Policy
from repertory.catalogue.views import RECIPE, View, views


class Kind(StrEnum):
    """The kind of an item."""

    SKILL = "skill"
    TOOL = "tool"
    DOCUMENT = "document"


class Texts(msgspec.Struct, frozen=True, array_like=True):
    """The largest fields of an item, which need not stay in memory; see ``Item``."""

    body: str
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None


class StoredTexts(Protocol):
    """The texts of an item that are not in memory."""

    def read(self) -> Texts:
        """Read them."""
        ...


class Item(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True, rename="camel"
):
    """One searchable thing.

    Attributes:
        id: A pure function of source and name: ``server__tool`` for tools, ``source/folder`` for
            skills, ``source/path`` for documents.
        kind: skill, tool or document.
        name: Its name as people say it; the title of a document.
        source: The name of its source.
        description: What it does, in a few sentences; the synopsis of a document.
        body: The whole text of a skill or a document; empty for tools.
        server: The server of a tool; empty for everything else.
        path: Its file, as the source names it; empty if it has none.
        tags: Words to filter by, sorted; the tags of a tool are its claims, see ``safety``.
        input_schema: The JSON Schema of a tool's arguments.
        output_schema: The JSON Schema of a tool's result.
        extra: Its other fields (unknown front matter keys, tool annotations).
        policy: The editorial decisions of its author and of the configuration, if any.
    """

    id: str
    kind: Kind
    name: str
    source: str
    description: str = ""
    body: str = ""
    server: str = ""
    path: str = ""
    tags: tuple[str, ...] = ()
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    extra: dict[str, Any] = {}
    policy: Policy | None = None

    def views(self) -> list[View]:
        """The texts of this item that are embedded: the item itself first, then its sections."""
        return views(self.name, self.server, self.description, self.body)

    def content_hash(self) -> str:
        """SHA-256, in hex, over the recipe's version and every text that is embedded."""
        return self.whole()._content_hash

    def metadata_hash(self) -> str:
        """SHA-256, in hex, over all fields of the whole item."""
        return self._metadata_hash

    def under(self, policy: Policy | None) -> "Item":
        """This item with another policy; the same object for the same policy."""
        if policy == self.policy:
            return self
        if policy not in self._under:
            self._under.clear()
            item = msgspec.structs.replace(self.whole(), policy=policy)
            place = self.texts_place
            self._under[policy] = item if place is None else item.without_texts(place)
        return self._under[policy]

    @property
    def texts(self) -> Texts:
        """The fields that take the most memory."""
        return Texts(self.body, self.input_schema, self.output_schema)

    def without_texts(self, place: StoredTexts) -> "Item":
        """A copy with the same hashes but no texts; its ``whole`` reads them from ``place``."""
        item = msgspec.structs.replace(self, body="", input_schema=None, output_schema=None)
        item.__dict__.update(_metadata_hash=self.metadata_hash(), _texts=place)
        return item

    def whole(self) -> "Item":
        """This item with its texts."""
        if self.texts_place is None:
            return self
        return msgspec.structs.replace(self, **msgspec.structs.asdict(self.texts_place.read()))

    @property
    def texts_place(self) -> StoredTexts | None:
        """Where the texts are, if they are not in memory."""
        found: StoredTexts | None = self.__dict__.get("_texts")
        return found

    # Computed once per object, because a watched source returns the same objects on every scan.
    @cached_property
    def _under(self) -> "dict[Policy | None, Item]":
        return {}

    @cached_property
    def _content_hash(self) -> str:
        digest = hashlib.sha256(f"recipe {RECIPE}".encode())
        for view in self.views():
            digest.update(b"\0" + view.text.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @cached_property
    def _metadata_hash(self) -> str:
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()


# A point's id consists of the key of its item and the number of its section. The id alone
# identifies a match, because reading payloads takes longer than searching.
KEY_BYTES = 12
END_KEY = 1 << 8 * KEY_BYTES  # above every key
SECTION_BITS = 32
SECTION_MASK = (1 << SECTION_BITS) - 1


def item_key(item_id: str) -> int:
    """The first part of all point ids of an item: a digest of its id, ``KEY_BYTES`` long."""
    text = item_id.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=KEY_BYTES).digest())


def point_id(key: int, section: int | None = None) -> UUID:
    """The point id of an item, or of one of its sections, by the item's key."""
    return UUID(int=key << SECTION_BITS | (0 if section is None else section + 1))


def point_parts(point: UUID) -> tuple[int, int | None]:
    """The item key and the section number in a point id; None for the item itself."""
    number = point.int & SECTION_MASK
    return point.int >> SECTION_BITS, number - 1 if number else None
