"""The name and the description of one skill, for each kind there is."""

from pathlib import Path

from repertory.sources.builtin_skills import description
from repertory.sources.markdown_skills import MarkdownSkills
from repertory.sources.python_skills import MANIFESTS, PythonSkills
from repertory.sources.reading.files import Found, read_text


def extract_python_skill_text(skills_dir: Path, skill_id: str) -> tuple[str, str] | None:
    """The name and description of the Python skill in a folder below ``skills_dir``.

    Returns:
        None where there is no such folder below it, or no manifest with a description.
    """
    root = skills_dir.resolve()
    folder = (root / skill_id).resolve() if "\0" not in skill_id else root
    if folder == root or not folder.is_relative_to(root):
        return None
    source = PythonSkills(name="python", path=root)
    for manifest in (folder / name for name in MANIFESTS):
        if manifest.exists():
            return _extract(source, manifest)
    return None


def extract_markdown_skill_text(path: Path) -> tuple[str, str] | None:
    """The name of a Markdown skill, from its file, and its first paragraph.

    Front matter that gives them goes first.

    Returns:
        None where the file cannot be read.
    """
    return _extract(MarkdownSkills(name="markdown", path=path.parent), path)


def extract_builtin_skill_text(name: str, content: str) -> tuple[str, str]:
    """The name of a built-in skill and the first 500 characters of its text."""
    return name, description(content)


def _extract(source: PythonSkills | MarkdownSkills, path: Path) -> tuple[str, str] | None:
    text, _ = read_text(str(path))
    if text is None:
        return None
    place = path.relative_to(source.path).as_posix()
    items = source.read(Found(place, str(path)), text).items
    return (items[0].name, items[0].description) if items else None
