"""Rebuild of the skill index from its sources; only new and changed skills are embedded."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from typing_extensions import override

from repertory.catalogue.skill_format import SKILL_FILES
from repertory.catalogue.views import RECIPE, views
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.models import Model
from repertory.errors import UsageError
from repertory.index.cache import vector_key
from repertory.indexing.scan import ScanResult, scan_source
from repertory.skill_discovery.index import SkillDiscoveryIndex, SkillSource, StoredSkill
from repertory.sources.builtin_skills import BuiltinSkills
from repertory.sources.markdown_skills import MarkdownSkills
from repertory.sources.python_skills import MANIFESTS, PythonSkills
from repertory.sources.skill_folders import SkillFolders
from repertory.sources.source import Source

_SOURCES: dict[str, SkillSource] = {
    PythonSkills.type: "python",
    SkillFolders.type: "markdown",
    MarkdownSkills.type: "markdown",
    BuiltinSkills.type: "builtin",
}

_log = logging.getLogger(__name__)


def rebuild_skill_index(
    index: SkillDiscoveryIndex,
    engine: EmbeddingEngine,
    skills_dir: Path | str,
    python_skills_dir: Path | str,
    builtins: Mapping[str, str] | None = None,
) -> int:
    """Update an index to match the installed skills; only new and changed ones are embedded.

    An id is ``python/``, ``skills/`` (``SKILL.md`` folders), ``markdown/`` or ``builtin/``, plus
    the skill's path or name. Skills of earlier rebuilds that no longer exist are removed;
    unreadable ones and those added by ``index_skill`` are kept. If the model changed, all skills
    are embedded again.

    Args:
        index: The index.
        engine: Embeds all changed skills in one batch.
        skills_dir: The folder of ``SKILL.md`` folders and plain Markdown skills.
        python_skills_dir: The folder of Python skills.
        builtins: The texts of built-in skills, by name.

    Returns:
        The number of skills embedded.

    Raises:
        ModelError: The engine failed; nothing was changed.
        StoreError: The index cannot be read or written.
        UsageError: ``index_skill`` added embeddings of another dimension than the model's.
    """
    stored = index.entries()
    by_hand = {entry.skill_id for entry in stored if not entry.origin}
    is_foreign = index.dimension not in (None, engine.model.dimension)
    if is_foreign and by_hand:
        raise UsageError(
            f"Skills were indexed by hand ({len(by_hand):,}) with vectors of {index.dimension:,} "
            f"numbers, and {engine.model.id} makes {engine.model.dimension:,}; remove them first, "
            "or use another folder."
        )
    sources: list[Source] = [
        PythonSkills(name="python", path=python_skills_dir),
        SkillFolders(name="skills", path=skills_dir),
        _PlainSkills(name="markdown", path=skills_dir),
        BuiltinSkills(name="builtin", skills=builtins or {}),
    ]
    scans = {source.name: scan_source(source) for source in sources}
    found = {entry.skill_id: entry for one in scans.values() for entry in _skills(one)}
    kept = {
        entry.skill_id: entry
        for entry in stored
        if entry.origin in scans and scans[entry.origin].keeps(entry.skill_id)
    }
    wanted = kept | found
    gone = [one.skill_id for one in stored if one.skill_id not in by_hand | wanted.keys()]
    digests = {entry.skill_id: entry.digest for entry in stored}
    changed = [
        entry
        for entry in (_digested(engine.model, one) for one in wanted.values())
        if entry.skill_id not in by_hand and digests.get(entry.skill_id) != entry.digest
    ]
    if changed:
        texts = [views(one.name, "", one.description, "")[0].text for one in changed]
        vectors = engine.embed_texts(texts)
        if is_foreign:  # all skills have changed
            index.remove(list(digests))
        index.write(changed, vectors)
    index.remove(gone)
    for name, one in scans.items():
        for problem in one.scan.problems if one.scan else [one.error]:
            _log.info("skill_problem", extra={"source": name, "problem": str(problem)})
    _log.info("skills_rebuilt", extra={"embedded": len(changed), "removed": len(gone)})
    return len(changed)


class _PlainSkills(MarkdownSkills):
    """Markdown skills, without the Markdown files of skills that have a folder."""

    @override
    def wants(self, filename: str) -> bool:
        return filename not in SKILL_FILES and super().wants(filename)

    @override
    def passes_over(self, place: str) -> str:
        folder = os.path.join(self.path, place)  # noqa: PTH118 - as below
        # Unlike ``Path.is_file``, it does not raise in an unreadable folder.
        is_skill = any(
            os.path.isfile(os.path.join(folder, name))  # noqa: PTH113, PTH118 - see above
            for name in (*SKILL_FILES, *MANIFESTS)
        )
        return "it is a skill with a file of its own" if is_skill else super().passes_over(place)


def _skills(scanned: ScanResult) -> list[StoredSkill]:
    return [
        StoredSkill(
            skill_id=item.id,
            name=item.name,
            description=item.description,
            source=_SOURCES[scanned.source.type],
            origin=scanned.source.name,
        )
        for item in (scanned.scan.items if scanned.scan else ())
    ]


def _digested(model: Model, entry: StoredSkill) -> StoredSkill:
    """Set the digest of the skill's stored data and the model."""
    facts = "\0".join((str(RECIPE), entry.source, entry.name, entry.description))
    return msgspec.structs.replace(entry, digest=vector_key(model, facts).hex())
