"""One item in the keyword index: its displayed entry, and the weights of its terms."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.mentions import mentions
from repertory.catalogue.names import compact_name
from repertory.catalogue.policy import Policy
from repertory.catalogue.safety import CLAIMS
from repertory.catalogue.views import split_at_headings
from repertory.index.keywords.tokens import wholes, words
from repertory.text import cut

SHOWN_DESCRIPTION = 400  # characters of a description that are stored for display
MAX_SCHEMA_DEPTH = 4  # levels of nested parameters that are read
SATURATION = 1.2  # BM25's k1
# The prefix of a word that is indexed as written. A typo has a different stem than the correct word
# ("recipeint" and "recipi"), so typos are looked up among words, not among stems.
WRITTEN = "="
# The prefixes of the keys of tools that a skill mentions, by id and by name. No word begins with
# them, and they are too long to match by a typo, so only ``links`` reads these keys.
TOOL = "@@"
TOOL_NAME = "@:"


class Field(msgspec.Struct, frozen=True):
    """The weight of a term in one field. Two fields may have the same name.

    A field's length is compared with a fixed reference, not with the catalogue's average. So a
    term's weight depends only on its item, and an index updated item by item equals one that was
    built at once.
    """

    name: str
    weight: float
    length: float  # the reference length, in terms
    least: float  # the minimum weight of a term in this field
    most: float  # its maximum weight
    normalisation: float = 0.75  # BM25's b
    as_written: bool = True  # whether words are also indexed unstemmed, see ``WRITTEN``


NAME = Field("name", 5.0, 3, 0.9, 1.0, 0.5)
DESCRIPTION = Field("description", 1.0, 25, 0.75, 0.9)
SERVER = Field("server", 1.0, 2, 0.67, 0.75)
HEADINGS = Field("headings", 0.5, 40, 0.67, 0.75)
PARAMETERS = Field("parameters", 0.5, 6, 0.67, 0.75)
PARAMETER_TEXT = Field("parameters", 0.25, 40, 0.57, 0.65)
BODY = Field("body", 0.25, 400, 0.57, 0.65, 0.9, as_written=False)


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """The fields of an item for display and filters, and the hash of its version.

    Attributes:
        body: A hash of a document's text. It distinguishes copies from documents that only begin
            alike, such as change logs.
    """

    id: str
    hash: str
    kind: Kind
    name: str
    compact: str
    description: str
    source: str
    server: str
    path: str
    tags: tuple[str, ...]
    policy: Policy | None = None
    body: str = ""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Its other names."""
        return self.policy.aliases if self.policy else ()

    @property
    def names(self) -> tuple[str, ...]:
        """Its own name, then its aliases."""
        return self.name, *self.aliases


def shown_description(entry: Entry) -> str:
    """The stored description of an item, with an ellipsis if it may be truncated."""
    kept = entry.description
    return cut(f"{kept} …", SHOWN_DESCRIPTION) if len(kept) >= SHOWN_DESCRIPTION else kept


def entry(item: Item) -> Entry:
    """The entry of an item."""
    return Entry(
        id=item.id,
        hash=item.metadata_hash(),
        kind=item.kind,
        name=item.name,
        compact=compact_name(item.name),
        description=" ".join(item.description.split())[:SHOWN_DESCRIPTION],
        source=item.source,
        server=item.server,
        path=item.path,
        tags=item.tags,
        policy=item.policy,
        body=_digest(item.body) if item.kind is Kind.DOCUMENT else "",
    )


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def term_weights(item: Item) -> dict[str, float]:
    """The weights, 0…1, of an item's terms, of its words as written, and of its mentions.

    A term's frequency in each field, normalised by the field's length, is weighted and summed over
    the fields, and the sum is saturated (Robertson, Zaragoza and Taylor 2004, simple BM25F). It is
    then scaled to the range of the best field that has the term. So a term in a name always weighs
    more than one in a description, however often a text repeats it.
    """
    total: dict[str, float] = {}
    best: dict[str, Field] = {}
    for field, text in fields(item):
        found = words(text)
        joined = wholes(text)
        b = field.normalisation
        scale = field.weight / (1 - b + b * len(found) / field.length)
        found += joined
        keys = [term for _, term in found]
        if field.as_written:
            keys += [WRITTEN + written for written, term in found if written != term]
        for key, count in Counter(keys).items():
            total[key] = total.get(key, 0.0) + scale * count
            if key not in best or best[key].least < field.least:
                best[key] = field
    weights = {
        term: best[term].least
        + (best[term].most - best[term].least) * weight / (SATURATION + weight)
        for term, weight in total.items()
    }
    return weights | {
        (TOOL + one.tool if one.tool else TOOL_NAME + one.name): 1.0 for one in mentions(item)
    }


def fields(item: Item) -> list[tuple[Field, str]]:
    """The texts of an item that are searched for words, each with its field."""
    parameters = [*_parameters(item.input_schema or {}, MAX_SCHEMA_DEPTH), *_arguments(item)]
    title = item.extra.get("title")
    description = f"{item.description} {' '.join(spoken_tags(item))}"
    if isinstance(title, str):
        description = f"{title} {description}"
    return [
        (NAME, item.name),
        *((NAME, alias) for alias in (item.policy.aliases if item.policy else ())),
        (DESCRIPTION, description),
        (SERVER, item.server),
        (PARAMETERS, " ".join(name for name, _ in parameters)),
        (PARAMETER_TEXT, " ".join(text for _, text in parameters)),
        (HEADINGS, " ".join(part.title for part in split_at_headings(item.body))),
        (BODY, item.body),
    ]


def spoken_tags(item: Item | Entry) -> list[str]:
    """The tags that are searched as words. A tool's claims about its effects are left out."""
    return [tag for tag in item.tags if item.kind is not Kind.TOOL or tag not in CLAIMS]


def _arguments(item: Item) -> Iterator[tuple[str, str]]:
    """The name and the description of each argument that a skill's manifest lists."""
    listed = item.extra.get("arguments")
    for one in listed if isinstance(listed, list) else ():
        name, text = (
            (one.get("name"), one.get("description")) if isinstance(one, dict) else (one, "")
        )
        if isinstance(name, str):
            yield name, text if isinstance(text, str) else ""


def _parameters(schema: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str]]:
    """The name and the description of each parameter of a tool, including nested ones."""
    properties = schema.get("properties")
    if depth == 0 or not isinstance(properties, Mapping):
        return
    for name, value in properties.items():
        if not isinstance(value, Mapping):
            yield str(name), ""
            continue
        description = value.get("description")
        yield str(name), description if isinstance(description, str) else ""
        yield from _parameters(value, depth - 1)
        if isinstance(items := value.get("items"), Mapping):
            yield from _parameters(items, depth - 1)
