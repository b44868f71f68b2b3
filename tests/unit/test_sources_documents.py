"""Document sources, and the titles and synopses that they take from the text."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.catalogue.item import Kind
from repertory.catalogue.views import views
from repertory.sources.documents import Documents
from repertory.sources.reading.markdown import MAX_PARAGRAPH_LENGTH, first_heading, first_paragraph
from repertory.sources.source import Scan
from tests.support.builders import write


def scan(root: Path) -> Scan:
    """Scan a document source named ``docs``."""
    return Documents(name="docs", path=root).scan()


def places(root: Path) -> list[str]:
    """The ids without the source's name."""
    return [item.id.removeprefix("docs/") for item in scan(root).items]


def test_a_document_becomes_an_item(tmp_path: Path) -> None:
    """Its title, synopsis and body come from the text."""
    write(tmp_path / "guide" / "setup.md", "# Set up\n\nHow to\nbegin.\n\n## Next\n\nMore.")
    [item] = scan(tmp_path).items
    assert (item.id, item.kind) == ("docs/guide/setup.md", Kind.DOCUMENT)
    assert (item.name, item.description) == ("Set up", "How to begin.")
    assert item.body.endswith("More.")
    assert item.path == str(tmp_path / "guide/setup.md")


@pytest.mark.parametrize("key", ["synopsis", "description", "summary", "excerpt", "abstract"])
def test_front_matter_gives_title_and_synopsis(tmp_path: Path, key: str) -> None:
    """Front matter takes precedence over the text; its other fields are kept."""
    write(tmp_path / "a.md", f"---\ntitle: T\n{key}: S\ntags: x\nowner: o\n---\n# H\n\nP.")
    [item] = scan(tmp_path).items
    assert (item.name, item.description, item.tags) == ("T", "S", ("x",))
    assert item.extra["owner"] == "o"


def test_a_document_without_heading_is_named_after_its_file(tmp_path: Path) -> None:
    """Plain text has no title of its own."""
    write(tmp_path / "notes.txt", "First things first.")
    assert scan(tmp_path).items[0].name == "notes.txt"


def test_broken_front_matter_is_part_of_the_text(tmp_path: Path) -> None:
    """The document is kept, with a warning."""
    write(tmp_path / "a.md", "---\nA text that begins with a rule.\n")
    found = scan(tmp_path)
    assert found.items[0].description == "A text that begins with a rule."
    assert [problem.severity for problem in found.problems] == ["warning"]


def test_only_prose_files_are_found(tmp_path: Path) -> None:
    """Code, files in skill folders, NeuroScript and hidden files are left out."""
    for place in ("a.md", "b.MDX", "c.markdown", "d.txt", "e.rst", "f.adoc"):
        write(tmp_path / place)
    for place in ("g.py", "h.ns.txt", "s/SKILL.md", "s/references/r.md", ".h/i.md", ".j.md"):
        write(tmp_path / place)
    assert places(tmp_path) == ["a.md", "b.MDX", "c.markdown", "d.txt", "e.rst", "f.adoc"]


def test_lists_of_packages_are_left_out(tmp_path: Path) -> None:
    """As are the text files of other tools, unless they are included."""
    write(
        tmp_path / "requirements" / "extras.txt", "# For tests\npytest>=8.0 \\\n  --hash=sha256:0\n"
    )
    write(
        tmp_path / "constraints.txt", "-r base.txt\nkombu[redis]\ngit+https://example.com/a.git\n"
    )
    write(tmp_path / "src" / "CMakeLists.txt", "project(a)\n")
    write(tmp_path / "product-requirements.txt", "Login\nA user signs in with a password.\n")
    write(tmp_path / "shopping.txt", "milk\nbread\n")
    write(tmp_path / "steps.txt", "- milk\n- x == 1\n")
    scan = Documents(name="docs", path=tmp_path).scan()
    assert [item.id for item in scan.items] == [
        "docs/product-requirements.txt",
        "docs/shopping.txt",
        "docs/steps.txt",
    ]
    assert {one.reason for one in scan.passed_over} == {
        "it lists packages",
        "it is for other programs",
    }
    chosen = Documents(name="docs", path=tmp_path, include=["constraints.txt"]).scan()
    assert "docs/constraints.txt" in [item.id for item in chosen.items]


def test_included_files_are_documents_too(tmp_path: Path) -> None:
    """The title is the file's name, the synopsis is empty, and front matter is plain text."""
    write(tmp_path / ".gitignore", "gen/\n")
    for place in ("src/a/b.py", "src/gen/c.py", "top.py", "src/.h.py", "src/a/b.txt", "x/Makefile"):
        write(tmp_path / place, "---\ntitle: no\n---\nBody.\n")
    source = Documents(name="docs", path=tmp_path, include=["src/**/*.py", "Makefile"])
    found = {item.path.removeprefix(f"{tmp_path}/"): item for item in source.scan().items}
    assert list(found) == ["src/a/b.py", "src/a/b.txt", "x/Makefile"]
    code = found["src/a/b.py"]
    assert (code.name, code.description) == ("b.py", "")
    assert code.body.startswith("---\ntitle: no")
    assert found["src/a/b.txt"].name == "no"


def test_an_include_matches_files_in_folders(tmp_path: Path) -> None:
    """Patterns have the syntax of ``.gitignore``."""
    for place in ("src/a.c", "src/b/c.h", "src/b/test.h", "other/d.c"):
        write(tmp_path / place)
    source = Documents(name="docs", path=tmp_path, include=["src/", "!test.*"])
    assert [item.name for item in source.scan().items] == ["a.c", "c.h"]


@pytest.mark.parametrize(
    ("written", "named"),
    [("\u00e9t\u00e9", "e\u0301te\u0301"), ("e\u0301te\u0301", "\u00e9t\u00e9")],
)
def test_an_include_matches_names_with_decomposed_accents(
    tmp_path: Path, written: str, named: str
) -> None:
    """NFC and NFD match in names of folders and files; macOS writes NFD."""
    for file in (named, "other"):
        write(tmp_path / named / f"{file}.py")
    source = Documents(name="docs", path=tmp_path, include=[f"{written}/{written}.py"])
    assert [item.name for item in source.scan().items] == [f"{named}.py"]


def test_included_files_without_text_are_not_reported(tmp_path: Path) -> None:
    """Empty files and images are not reported as problems; files that are too large are."""
    write(tmp_path / "__init__.py", "")
    (tmp_path / "logo.png").write_bytes(b"\0png")
    write(tmp_path / "large.py", "x" * (1 << 21))
    found = Documents(name="docs", path=tmp_path, include=["*"]).scan()
    assert [problem.path for problem in found.problems] == [str(tmp_path / "large.py")]
    assert found.items == []


@pytest.mark.parametrize("text", [b"", b" \r\n\t", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
@pytest.mark.parametrize("name", ["README.md", "main.py"])
def test_an_empty_document_is_removed_without_a_problem(
    tmp_path: Path, name: str, text: bytes
) -> None:
    """A document that becomes empty is deleted from the index, and no problem is reported."""
    write(tmp_path / name, "# Text\n\nIt says something.\n")
    source = Documents(name="docs", path=tmp_path, include=["*.py"])
    assert [item.id for item in source.scan().items] == [f"docs/{name}"]
    (tmp_path / name).write_bytes(text)
    change = source.rescan([str(tmp_path / name)])
    assert change is not None
    assert change.gone == {f"docs/{name}"}
    scan = source.scan()
    assert (scan.items, scan.problems, scan.unread) == ([], [], frozenset())
    reasons = ["it is empty"] if name == "README.md" else []
    assert [one.reason for one in scan.passed_over] == reasons


def test_an_include_is_part_of_the_identity_of_a_source(tmp_path: Path) -> None:
    """Sources with different ``include`` are unequal; without one, the identity has no such key."""
    plain = Documents(name="docs", path=tmp_path)
    assert set(plain.identity()) == {"type", "name", "path"}
    including = Documents(name="docs", path=tmp_path, include=["*.py"])
    assert including != plain
    assert including.identity()["include"] == ["*.py"]


def test_gitignore_files_are_honoured(tmp_path: Path) -> None:
    """Nested files apply below their folder, the nearest one wins, broken patterns are ignored."""
    write(tmp_path / ".gitignore", "build/\n*.log.md\n/top.md\n[z-a]\n!\ndocs/**/draft.md\n")
    write(tmp_path / "docs" / ".gitignore", "!keep.log.md\nlocal.md\n")
    kept = ["a.md", "docs/a/top.md", "docs/keep.log.md", "local.md"]
    ignored = ["build/x.md", "docs/build/y.md", "b.log.md", "top.md", "docs/local.md"]
    for place in [*kept, *ignored, "docs/a/draft.md"]:
        write(tmp_path / place)
    assert places(tmp_path) == kept


def test_a_changed_gitignore_applies_at_the_next_scan(tmp_path: Path) -> None:
    """The file is read again for each scan."""
    write(tmp_path / "a.md")
    source = Documents(name="docs", path=tmp_path)
    assert len(source.scan().items) == 1
    write(tmp_path / ".gitignore", "*.md")
    assert source.scan().items == []


def test_a_pattern_that_could_take_exponential_time_is_harmless(tmp_path: Path) -> None:
    """A hostile pattern neither hangs the scan nor excludes the file."""
    write(tmp_path / ".gitignore", "*a" * 40 + "b\n")
    write(tmp_path / ("a" * 200 + ".md"))
    assert len(places(tmp_path)) == 1


def test_a_name_in_front_matter_is_used_as_the_title(tmp_path: Path) -> None:
    """Commands and agents have a name, and their first heading is often that of a section."""
    write(tmp_path / "a.md", "---\nname: reviewer\n---\nYou review.\n\n## Focus Areas\n")
    write(tmp_path / "b.md", "---\nname: reviewer\ntitle: Reviews\n---\nYou review.\n")
    assert [item.name for item in scan(tmp_path).items] == ["reviewer", "Reviews"]


@pytest.mark.parametrize(
    ("text", "heading", "paragraph"),
    [
        ("# One ##\n\ntext", "One", "text"),
        ("One\n===\n\ntext", "One", "text"),
        ("# Use C# { #use-c .wide }\n\ntext", "Use C#", "text"),
        ("One {:#one}\n===\n\ntext", "One", "text"),
        ("One\n---\ntext", "One", "text"),
        ("=====\nOne\n=====\n\ntext", "One", "text"),
        ("= One\n:toc:\n\ntext", "One", "text"),
        ("```\n# no\n\nno\n```\n# One\ntext", "One", "text"),
        ("<p>\n<img>\n</p>\n\n| a |\n|---|\n\n* * *\n\n.. image:: x\n\ntext", "", "text"),
        ("import A from './a'\n\nexport const b = \"c\"\n\nimport it.", "", "import it."),
        ("<!-- one line -->\n\n[a]: http://x\n\ntext", "", "text"),
        ("", "", ""),
        ("```\nnever closed", "", ""),
        ("```\nno\n``` no\nno\n````\ntext", "", "text"),
        ("<!--\n```\n-->\ntext", "", "text"),
        ("~~~~\n<!--\n~~~\n~~~~\ntext", "", "text"),
        ("# [One](http://x) **two**\n\nA **[b](c)** and ![d](e).", "One two", "A b and d."),
        ("> [!NOTE]\n> Quoted\n> text.", "", "Quoted text."),
        ("x**2 + y**2, `**/*.py` and `**/*.js`", "", "x**2 + y**2, `**/*.py` and `**/*.js`"),
        ("**Status:** new\n**Date**: today\n\ntext", "", "text"),
        ("**Status:** new\n**Date**: today", "", "Status: new Date: today"),
        ("[a](b) | [c](d)\n\n- [e](#f)\n- [g](#h)\n\ntext", "", "text"),
        ("Some :ref:`x <y>` text > 3.", "", "Some :ref:`x <y>` text > 3."),
        ("**Role:** Finds faults.\n\nMore", "", "Role: Finds faults."),
        ("# <a href='x'><img src='y' alt='Logo'/>One</a>\n\ntext", "One", "text"),
        ('# <img src="y" alt="One">\n\ntext', "One", "text"),
        ('# List<Item>, <a name="b"></a>B', "List<Item>, B", ""),
        ('<h1 align="center">One</h1>\n\n## Two\n\ntext', "One", "text"),
        (":::tip What you learn\n\n:::note\nUse it.\n:::", "", "Use it."),
        ("# One\n{: .no_toc }\n\n{: .note }\nUse it.\n{:toc}\n", "One", "Use it."),
        ("{:ok, value} is returned.", "", "{:ok, value} is returned."),
        ("= One\nA Writer <a@b.c>\n// settings:\n:toc: left\n\ntext", "One", "text"),
        ("```\n= no\n```\n\ntext", "", "text"),
        (
            "// courtesy of a writer\n\n//= One\n:toc: left\n\ninclude::a[]\n\n:!toc:\n\ntext",
            "",
            "text",
        ),
        ("One\n===\n\n======= ===\nNo A\n======= ===\n\ntext", "One", "text"),
        ("**Version:** 1 | **Price:** 2 | **Bundle**\n\ntext", "", "text"),
        ("**Draft** | Owner: A | Date: 2026\n\ntext", "", "text"),
        ("**Date** : 2026-02-07\n\ntext", "", "text"),
        ("*Changed: 2026-02-07*\n\n- \n- \n\ntext", "", "text"),
        ("It costs: 5 euros.\n\nMore", "", "It costs: 5 euros."),
        ("Choose `a | b`.\n\nMore", "", "Choose `a | b`."),
        ("Three parts:\n| a |\n|---|\n\nmore", "", "Three parts:"),
        (
            "循**“逻辑 (C)”、“显式 (E)”**和**“可视”**的**报告**。",
            "",
            "循“逻辑 (C)”、“显式 (E)”和“可视”的报告。",
        ),
        ('# <img src="x"> One [![CI](a)](b) <a name="c"></a>\n\ntext', "One", "text"),
        ("<div>\n<h1 align='center'>\n  <a href='x'>One</a>\n</h1>\n\ntext", "One", "text"),
        ("<h1><img src='x'></h1>\n\n## Vec<T>\n\ntext", "Vec<T>", "text"),
        ("[a](b) | 简体中文\n\nA<br>b [![c](d)](e)c.", "", "A b c."),
        ("English · [a](b)\n\n## One\n\ntext", "One", "text"),
        ("It says hello.\n\n## Usage\n\nmore", "", "It says hello."),
        ("[a](b) | [c](d)\n\n## One\n\ntext", "One", "text"),
        ("It says hello.\n\n# One\n\nmore", "One", "It says hello."),
        ("It says hello.\n\nOne\n===\n\nTwo\n---\nmore", "One", "It says hello."),
        ("It says hello.\n\nTwo\n---\nmore", "", "It says hello."),
    ],
)
def test_the_first_heading_and_paragraph(text: str, heading: str, paragraph: str) -> None:
    """Markdown, reStructuredText and AsciiDoc are supported."""
    assert (first_heading(text), first_paragraph(text)) == (heading, paragraph)


@pytest.mark.parametrize(
    ("name", "text", "body"),
    [
        ("a.md", "One\n===\ntext\n\nTwo\n---\nmore", "# One\ntext\n\n## Two\nmore"),
        ("a.rst", "===\nOne\n===\n\nTwo\n~~~\n\nText\n--", "# One\n\n## Two\n\nText\n--"),
        (
            "a.rst",
            "One\n===\n::\n\n    a\n    ===\n\nTwo\n===",
            "# One\n::\n\n    a\n    ===\n\n# Two",
        ),
        ("a.txt", "1. One\n------\n\nAnd so on\n...", "# 1. One\n\nAnd so on\n..."),
        ("a.adoc", "= One\n\n== Two\n----\n== no\n----", "# One\n\n## Two\n````\n== no\n````"),
        (
            "a.adoc",
            "[source]\n----\n# no\n----\n////\n== no\n////",
            "[source]\n````\n# no\n````\n////\n== no\n////",
        ),
        ("a.md", *["```\nno\n---\n```\n\n- no\n---\n\n1. no\n---\n\n~~~\nno\n===\n~~~"] * 2),
        ("a.md", *["two\nlines\n---\n\n| a |\n---\n\nno\n^^^\n\nno\n\n---"] * 2),
    ],
)
def test_headings_are_converted_to_markdown(
    tmp_path: Path, name: str, text: str, body: str
) -> None:
    """Headings of every notation are converted; lines in code, lists and tables are not."""
    write(tmp_path / name, text)
    [item] = scan(tmp_path).items
    assert item.body == body


def test_a_long_document_has_a_view_for_each_section(tmp_path: Path) -> None:
    """Underlined headings also start sections."""
    section = "It is rotated with a command.\n" * 30
    write(tmp_path / "a.md", f"Guide\n=====\n\nKeys\n----\n{section}\nLogs\n----\n{section}")
    [item] = scan(tmp_path).items
    found = views(item.name, "", item.description, item.body)
    assert {"## Keys", "## Logs"} <= {view.heading for view in found}


def test_a_long_paragraph_is_cut_between_words() -> None:
    """An ellipsis marks the cut."""
    assert first_paragraph("word " * 200) == "word " * 98 + "word…"
    assert first_paragraph("x" * 600) == "x" * (MAX_PARAGRAPH_LENGTH - 1) + "…"


@given(st.text("ab #=-`~\n<>!|*.") | st.text())
def test_a_paragraph_is_one_line_of_bounded_length(text: str) -> None:
    """No text raises an error or yields a longer or multi-line paragraph."""
    paragraph = first_paragraph(text)
    assert "\n" not in paragraph + first_heading(text)
    assert len(paragraph) <= MAX_PARAGRAPH_LENGTH
