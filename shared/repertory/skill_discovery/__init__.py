"""Contract 4: semantic search in installed skills; a separate index for Python programs."""

from repertory.skill_discovery.extraction import (
    extract_builtin_skill_text,
    extract_markdown_skill_text,
    extract_python_skill_text,
)
from repertory.skill_discovery.index import SkillDiscoveryIndex, SkillSearchResult
from repertory.skill_discovery.rebuild import rebuild_skill_index

__all__ = [
    "SkillDiscoveryIndex",
    "SkillSearchResult",
    "extract_builtin_skill_text",
    "extract_markdown_skill_text",
    "extract_python_skill_text",
    "rebuild_skill_index",
]
