"""MCP's skills extension: entries for skills, each with the digests of all its files.

``SKILL.md`` is served from the index, so that every replica of a team answers with the same bytes,
and changes that await a review are not served. Supporting files come from the disk; see
``skill_files``.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from mcp_types import RequestParams

from repertory.backend import Backend
from repertory.catalogue.item import Item, Kind
from repertory.catalogue.skill_format import SKILL_FILE
from repertory.errors import UnknownItemError
from repertory.formats.skill_text import defect, front_matter, skill_text
from repertory.formats.uris import folder_of, is_misplaced, uri_of
from repertory.skill_files import MAX_FILES, MAX_SIZE, TOO_MANY, SkillFile, SkillFiles
from repertory_query.mcp.item_uris import skill_at
from repertory_query.mcp.resources import page_after

EXTENSION = "io.modelcontextprotocol/skills"
WITHHELD = "repertory/withheldFiles"  # in ``_meta``: why supporting files are left out, by URI
PAGE_SIZE = 50  # skills per answer; small, because all their files are read
MAX_LEVELS = 5  # of nested skills

Json = dict[str, Any]


class SkillParams(RequestParams):
    """The parameters of ``skills/get``."""

    uri: str


def list_skills(backend: Backend, after: str, ttl_ms: int) -> Json:
    """A page of the skills with ids after this one; see ``ListSkillsResult``.

    Skills that violate the format are left out.
    """
    page, cursor = page_after(backend, after, PAGE_SIZE)
    entries = _Entries(backend, [item for item in page if not defect(item)])
    result = _result({"skills": entries.all}, entries.withheld, ttl_ms)
    return result | ({"nextCursor": cursor} if cursor else {})


def get_skill(backend: Backend, uri: str, ttl_ms: int) -> Json:
    """The entry of one skill; see ``GetSkillResult``.

    Raises:
        UnknownItemError: The URI is not that of a skill, or the skill violates the format.
    """
    skill, place = skill_at(backend, uri)
    if place != SKILL_FILE or uri_of(skill) != uri:
        raise UnknownItemError(f"No skill is served at {uri[:200]}.")
    if wrong := defect(skill):
        raise UnknownItemError(
            f"{uri[:200]} does not follow the Agent Skills format: {wrong}. You can still read it."
        )
    entries = _Entries(backend, [skill])
    return _result({"skill": entries.all[0]}, entries.withheld, ttl_ms)


def _result(content: Json, withheld: Json, ttl_ms: int) -> Json:
    said = {"_meta": {WITHHELD: withheld}} if withheld else {}
    caching = {"ttlMs": ttl_ms, "cacheScope": "private"}
    return {"resultType": "complete", **content, **caching, **said}


class _Entries:
    """The entries of some skills.

    Attributes:
        all: One entry for each skill.
        withheld: Why the supporting files of skills are left out, by the skill's URI.
    """

    def __init__(self, backend: Backend, skills: Sequence[Item]) -> None:
        self.withheld: dict[str, str] = {}
        self._items = {item.id: item for item in skills}
        self._files: dict[str, SkillFiles] = {}
        self._read(backend, [*self._items])
        self.all = [self._entry(skill) for skill in skills]

    def _read(self, backend: Backend, ids: Sequence[str]) -> None:
        """Read the files of the skills, and of their nested skills that the caller sees."""
        for _ in range(MAX_LEVELS):
            if not ids:
                return
            found = backend.skill_files(ids)
            self._files |= found
            inner = [
                f"{item_id}/{place}"
                for item_id, files in found.items()
                for place in files.nested[:MAX_FILES]
            ]
            items = backend.items([one for one in inner if one not in self._files])
            ids = [item.id for item in items.values() if item.kind is Kind.SKILL]
            self._items |= {item_id: items[item_id] for item_id in ids}

    def _entry(self, skill: Item) -> Json:
        folder = folder_of(skill)
        files = list(self._all_files(skill, ""))
        withheld = self._files.get(skill.id, SkillFiles()).withheld
        if len(files) > MAX_FILES or sum(file.size for file in files) > MAX_SIZE:
            withheld, files = TOO_MANY, [_main_file(skill)]
        if withheld:
            self.withheld[uri_of(skill)] = withheld
        return {
            "uri": uri_of(skill),
            "frontmatter": front_matter(skill),
            "resources": [
                {"uri": f"{folder}/{quote(one.place)}", "digest": one.digest, "size": one.size}
                for one in files
            ],
        }

    def _all_files(self, skill: Item, prefix: str) -> Iterator[SkillFile]:
        """All files of a skill, including those of its nested skills."""
        found = self._files.get(skill.id, SkillFiles())
        yield _main_file(skill, prefix)
        for file in found.files:
            yield SkillFile(place=prefix + file.place, digest=file.digest, size=file.size)
        for place in found.nested:
            inner = self._items.get(f"{skill.id}/{place}")
            if inner is not None and not is_misplaced(skill):
                yield from self._all_files(inner, f"{prefix}{place}/")


def _main_file(skill: Item, prefix: str = "") -> SkillFile:
    """The ``SKILL.md`` of a skill, as served."""
    data = skill_text(skill).encode()
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return SkillFile(place=prefix + SKILL_FILE, digest=digest, size=len(data))
