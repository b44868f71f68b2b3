"""The name and the description of one skill, for each kind of skill."""

from pathlib import Path

from repertory.sources.builtin_skills import description
from repertory.sources.markdown_skills import MarkdownSkills
from repertory.sources.python_skills import MANIFESTS, PythonSkills
from repertory.sources.reading.files import Found, read_file


def extract_python_skill_text(skills_dir: Path | str, skill_id: str) -> tuple[str, str] | None:
    """Return the name and description of the Python skill in a folder below ``skills_dir``.

    Returns:
        None if the folder is not below ``skills_dir`` or has no manifest with a description.
    """
    try:
        root = Path(skills_dir).resolve()
        folder = (root / skill_id).resolve()
        manifests = [path for name in MANIFESTS if (path := folder / name).exists()]
        inside = [path.resolve().is_relative_to(root) for path in (folder, *manifests)]
    except (OSError, RuntimeError, ValueError):  # too long, a loop of links, not a valid file name
        return None
    if folder == root or not manifests or not all(inside):
        return None
    place = manifests[0].relative_to(root).as_posix()
    return _extract(
        PythonSkills(name="python", path=root), Found(place, str(manifests[0]), str(root))
    )


def extract_markdown_skill_text(path: Path | str) -> tuple[str, str] | None:
    """Return the name of a Markdown skill's file and the skill's first paragraph.

    Values in its front matter take precedence.

    Returns:
        None if the file cannot be read, or its author hides it from models.
    """
    file = Path(path)
    source = MarkdownSkills(name="markdown", path=file.parent)
    return _extract(source, Found(file.name, str(file)))


def extract_builtin_skill_text(name: str, content: str) -> tuple[str, str]:
    """Return the name of a built-in skill and the first 500 characters of its text."""
    return name, description(content)


def _extract(source: PythonSkills | MarkdownSkills, file: Found) -> tuple[str, str] | None:
    try:
        text, _ = read_file(file)
    except ValueError:  # not a valid file name
        text = None
    items = source.read(file, text).items if text is not None else []
    return (items[0].name, items[0].description) if items else None
