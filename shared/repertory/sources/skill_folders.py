"""Skills in the Agent Skills format: folders with a ``SKILL.md``."""

import re
from pathlib import Path
from typing import Any

from typing_extensions import override

from repertory.catalogue.skill_format import (
    MAX_DESCRIPTION_LENGTH,
    MAX_NAME_LENGTH,
    SKILL_FILE,
    SKILL_FILES,
    is_skill_name,
)
from repertory.sources.folder import FolderSource
from repertory.sources.reading import frontmatter
from repertory.sources.reading.fields import hidden_by, text_field, when_to_use
from repertory.sources.reading.files import Found
from repertory.sources.reading.markdown import described
from repertory.sources.reading.walk import Walk
from repertory.sources.reading_cache import Reading
from repertory.sources.source import Problem, error, warning
from repertory.text import is_clean, normalized

# Hosts with their own skill folder, both in a project and in the home directory.
_HOSTS = (
    *("adal", "aider-desk", "augment", "autohand", "bob", "claude", "codeartsdoer", "codebuddy"),
    *("codemaker", "codestudio", "codewhale", "codex", "commandcode", "continue", "copilot"),
    *("cursor", "factory", "forge", "fx", "gemini", "goose", "grok", "hermes", "iflow"),
    *("inferencesh", "jazz", "junie", "kilo", "kiro", "kode", "lingma", "mcpjam", "minimax"),
    *("moxby", "mux", "neovate", "ona", "openclaw", "opencode", "openhands", "pochi", "qoder"),
    *("qwen", "reasonix", "roo", "rovodev", "terramind", "tinycloud", "trae", "vibe", "windsurf"),
    *("zcode", "zencoder"),
)
_OWN_ROOTS = tuple(f".{host}/skills" for host in _HOSTS)

# The skill folders of agent hosts, relative to a project and to the home directory; the shared
# root comes first.
PROJECT_ROOTS = (
    ".agents/skills",
    *_OWN_ROOTS,
    *(".cortex/skills", ".crush/skills", ".devin/skills", ".github/skills", ".kimchi/skills"),
    *(".opencode/skill", ".pi/skills", ".posit/assistant/skills", ".tabnine/agent/skills"),
    *("agent/skills", "skills"),
)
HOME_ROOTS = (
    ".agents/skills",
    *_OWN_ROOTS,
    *(".config/agents/skills", ".config/crush/skills", ".config/devin/skills"),
    *(".config/goose/skills", ".config/kimchi/harness/skills"),
    *(".config/opencode/skills", ".config/opencode/skill"),
    *(".codeium/windsurf/skills", ".deepagents/agent/skills", ".gemini/antigravity/skills"),
    *(".pi/agent/skills", ".posit/assistant/skills", ".snowflake/cortex/skills"),
    *(".tabnine/agent/skills",),
)

# Front matter that is not closed or comes after comments. It may be meant to hide the skill.
_MISPLACED = re.compile(r"\s*+(?:<!--(?>.*?-->)\s*+)*+(?:---|\+\+\+)[ \t]*+\n", re.DOTALL)
_ROOT_PARTS = tuple(root.split("/") for root in PROJECT_ROOTS)


class SkillFolders(FolderSource):
    """The skills below a folder, at any depth. An id is the source's name plus the place.

    Outside of skill folders, only ``SKILL.md`` makes a skill, because a ``skill.md`` may be any
    document there.

    A skill is hidden if its author disabled model invocation or marked it internal.
    """

    type = "skills"
    item_files = SKILL_FILES

    @override
    def wants(self, filename: str) -> bool:
        return filename == SKILL_FILE or (filename in SKILL_FILES and not self.gitignore)

    @override
    def hides(self, place: str) -> bool:
        """Whether a folder is hidden and neither a host's skill folder nor a parent of one.

        A folder ``skills`` in a hidden folder counts as a host's, even if the host is unknown.
        """
        parts = place.split("/")
        hidden = [at for at, part in enumerate(parts) if part.startswith(".")]
        if not hidden:
            return False
        inner = parts[hidden[-1] :]
        return inner[1:2] not in ([], ["skills"]) and not any(
            all(one == other for one, other in zip(inner, root, strict=False))
            for root in _ROOT_PARTS
        )

    @override
    def without_items(self, walk: Walk) -> dict[str, str]:
        """The folders in a skill folder without a skill. Empty for a whole project."""
        with_skills = {file.place.split("/")[0] for file in walk.files}
        if self.gitignore or not with_skills.isdisjoint(SKILL_FILES):
            return {}
        return {
            folder: _lacks_skill_file(self.path / folder)
            for folder in walk.folders
            if folder not in with_skills and is_clean(folder)  # others get a warning
        }

    @override
    def read(self, file: Found, text: str) -> Reading:
        """Read the skill of a file leniently. It only needs a description or a paragraph."""
        parsed = frontmatter.parse(text, file.path)
        if parsed.fields is None:
            return Reading(problems=parsed.problems, broken=True)
        if hidden := hidden_by(parsed.fields):
            return Reading(hidden=hidden)
        name = text_field(parsed.fields, "name")
        description = text_field(parsed.fields, "description") or described(parsed.body)
        is_misplaced = not parsed.fields and _MISPLACED.match(parsed.body)
        if is_misplaced or not description:
            misplaced = "front matter that does not begin the file or is not closed,"
            message = (
                f"The skill has {misplaced if is_misplaced else 'no description'} and was left "
                "out; begin the file with front matter whose `description` says what it does and "
                "when to use it."
            )
            problems = [*parsed.problems, error(file.path, message)]
            return Reading(problems=problems, broken=True)
        folder = self.file_id(file.place).rpartition("/")[2]
        item, wrong = self.item(
            file,
            parsed.fields,
            name=name or folder,
            description=f"{description} {when_to_use(parsed.fields)}".rstrip(),
            body=parsed.body,
        )
        deviations = _deviations(parsed.fields, file.path, folder)
        return Reading(items=[item], problems=[*parsed.problems, *wrong, *deviations])


def _lacks_skill_file(folder: Path) -> str:
    """Why a folder is not a skill, with a file that may be misnamed."""
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:  # the scan reports it
        names = []
    for name in SKILL_FILES:
        if name in names:
            return f"its {name} is a link that leads nowhere, or out of the source"
    misnamed = [name for name in sorted(names) if name.upper() == SKILL_FILE.upper()]
    return f"it has no {SKILL_FILE}" + (f", only {misnamed[0]}" if misnamed else "")


def _deviations(fields: dict[str, Any], path: str, folder: str) -> list[Problem]:
    """Return a warning for each deviation from the format."""
    messages = []
    name, description = text_field(fields, "name"), text_field(fields, "description")
    if not (name or description):
        messages.append(
            "The skill has neither name nor description, so its folder's name and its first "
            "paragraph are used; begin the file with front matter that has both."
        )
    elif not name:
        messages.append(f"The skill has no name, so its folder's is used, {folder!r}.")
    elif len(name) > MAX_NAME_LENGTH:
        messages.append(
            f"The name has {len(name)} characters; the format allows {MAX_NAME_LENGTH}."
        )
    elif not is_skill_name(name):
        messages.append(f"The name {name!r} is not lower-case letters, digits and single hyphens.")
    elif normalized("NFKC", name) != normalized("NFKC", folder):
        messages.append(f"The name {name!r} differs from its folder's, {folder!r}.")
    if name and not description:
        messages.append(
            "The skill has no description, so its first paragraph is used; hosts may not know "
            "when to use it."
        )
    if len(description) > MAX_DESCRIPTION_LENGTH:
        messages.append(
            f"The description has {len(description):,} characters; the format allows "
            f"{MAX_DESCRIPTION_LENGTH:,}, and hosts may cut the rest."
        )
    return [warning(path, message) for message in messages]
