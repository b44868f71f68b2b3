"""Skills of every form: folders, manifests, Markdown, Gemini, NeuroScript, and built-in ones."""

from pathlib import Path

import pytest

from repertory.catalogue.item import Kind
from repertory.formats.skill_text import front_matter
from repertory.skill_discovery.extraction import (
    extract_builtin_skill_text,
    extract_markdown_skill_text,
    extract_python_skill_text,
)
from repertory.skill_files import files_of
from repertory.sources.builtin_skills import BuiltinSkills
from repertory.sources.gemini_commands import GeminiCommands
from repertory.sources.markdown_skills import MarkdownSkills
from repertory.sources.neuroscript import NeuroScript, procedures
from repertory.sources.python_skills import PythonSkills
from repertory.sources.skill_folders import HOME_ROOTS, PROJECT_ROOTS, SkillFolders
from repertory.sources.source import Scan
from tests.support.builders import write

AREA = """:: version: 1
DEFINE PROCEDURE CalculateArea(width, height)
COMMENT:
    PURPOSE: Calculates the area
        of a rectangle.
    INPUTS: - width: number
            - height: number
    OUTPUT: number
    ALGORITHM: Multiply width by height.
ENDCOMMENT
RETURN width * height
END

DEFINE PROCEDURE Bare()
RETURN 1
END
"""


def skill(root: Path, folder: str, front: str, body: str = "Do it.") -> None:
    """Make a ``SKILL.md``."""
    write(root / folder / "SKILL.md", f"---\n{front}\n---\n{body}")


def scan(root: Path) -> Scan:
    """Scan a skill source named ``team``."""
    return SkillFolders(name="team", path=root).scan()


def messages(scan: Scan, root: Path) -> list[str]:
    """Return the problems, with paths relative to the root."""
    return [str(problem).removeprefix(f"{root}/") for problem in scan.problems]


def test_a_skill_folder_becomes_an_item(tmp_path: Path) -> None:
    """Name, description, body, tags and path are attributes; other fields become ``extra``."""
    skill(
        tmp_path,
        "office/pdf-forms",
        "name: pdf-forms\ndescription: Fill\n  PDF forms.\ntags: [pdf]\nlicense: MIT\n"
        "metadata: {version: '1.0', tags: office}",
        "# PDF\n\nSteps.\n",
    )
    [item] = scan(tmp_path).items
    assert item.id == "team/office/pdf-forms"
    assert item.kind is Kind.SKILL
    assert (item.name, item.source) == ("pdf-forms", "team")
    assert item.description == "Fill PDF forms."
    assert item.body == "# PDF\n\nSteps."
    assert item.tags == ("office", "pdf")
    assert item.path == str(tmp_path / "office/pdf-forms/SKILL.md")
    assert item.extra == {"license": "MIT", "metadata": {"version": "1.0", "tags": "office"}}


@pytest.mark.parametrize(
    ("front", "description", "when"),
    [
        ("description: Turns keys.\nwhen_to_use: If one\n  leaks.", "Turns keys.", "If one leaks."),
        ("description: d\nmetadata:\n  when-to-use: [a leak, an audit]", "d", "a leak; an audit"),
        ("when_to_use: If a key leaks.", "Do it.", "If a key leaks."),
        ("description: d\nwhen_to_use:", "d", ""),
    ],
)
def test_when_to_use_ends_the_description(
    tmp_path: Path, front: str, description: str, when: str
) -> None:
    """Hosts show both to the model. A served file has them apart, as written."""
    skill(tmp_path, "a", f"name: a\n{front}")
    [item] = scan(tmp_path).items
    write(tmp_path / "agents" / "b.md", f"---\n{front}\n---\nDo it.")
    [agent] = MarkdownSkills(name="agents", path=tmp_path / "agents").scan().items
    assert [item.description, agent.description] == [f"{description} {when}".strip()] * 2
    assert front_matter(item)["description"] == description


def test_commas_of_any_script_separate_list_entries(tmp_path: Path) -> None:
    """Tags and aliases may be separated by Chinese, Japanese and Arabic commas."""
    front = "name: a\ndescription: d\ntags: 写作\uff0c翻译、编辑, كتابة، نشر\naliases: 要約、まとめ"
    skill(tmp_path, "a", front)
    [item] = scan(tmp_path).items
    assert item.tags == tuple(sorted(("写作", "翻译", "编辑", "كتابة", "نشر")))
    assert item.policy is not None
    assert item.policy.aliases == ("要約", "まとめ")


def test_skill_md_in_lower_case_is_read_if_there_is_no_upper_case_one(tmp_path: Path) -> None:
    """Only folders of skills read it; elsewhere in a project it may be any document."""
    write(tmp_path / "one" / "skill.md", "---\nname: one\ndescription: d\n---\n")
    write(tmp_path / "one" / "notes.md", "# Notes\n")
    skill(tmp_path, "two", "name: two\ndescription: d")
    write(tmp_path / "two" / "skill.md", "---\nname: three\ndescription: d\n---\n")
    found = scan(tmp_path)
    assert [item.path.removeprefix(f"{tmp_path}/") for item in found.items] == [
        "one/skill.md",
        "two/SKILL.md",
    ]
    assert not found.problems
    assert [file.place for file in files_of(found.items[0]).files] == ["notes.md"]
    [only] = SkillFolders(name="team", path=tmp_path, gitignore=True).scan().items
    assert only.id == "team/two"


def test_a_root_that_is_a_skill_is_named_after_its_folder(tmp_path: Path) -> None:
    """Its id contains the folder's name, and skills below it are found as well."""
    skill(tmp_path / "solo", ".", "name: solo\ndescription: d")
    skill(tmp_path / "solo", "inner", "name: inner\ndescription: d")
    assert [item.id for item in scan(tmp_path / "solo").items] == ["team/solo", "team/inner"]


@pytest.mark.parametrize(
    ("folder", "name"),
    [("翻訳", "翻訳"), ("мой-навык", "мой-навык"), ("re\u0301sume\u0301", "r\u00e9sum\u00e9")],
)
def test_a_name_may_be_in_any_script(tmp_path: Path, folder: str, name: str) -> None:
    """The folder's name may have decomposed accents."""
    skill(tmp_path, folder, f"name: {name}\ndescription: d")
    found = scan(tmp_path)
    assert [item.name for item in found.items] == [name]
    assert found.problems == []


@pytest.mark.parametrize(
    ("front", "reason"),
    [
        ("name: other\ndescription: d", "The name 'other' differs from its folder's, 'a'"),
        ("name: Very Bad\ndescription: d", "The name 'Very Bad' is not lower-case"),
        (f"name: {'x' * 65}\ndescription: d", "The name has 65 characters"),
        ("description: d", "The skill has no name, so its folder's is used, 'a'"),
        (f"name: a\ndescription: {'d' * 1025}", "The description has 1,025 characters"),
        ("name: a\ndescription: Use when: now", "The value of `description` is not valid YAML"),
    ],
)
def test_a_skill_that_violates_the_format_is_loaded_with_a_warning(
    tmp_path: Path, front: str, reason: str
) -> None:
    """The item is loaded, and one warning says what to fix."""
    skill(tmp_path, "a", front)
    found = scan(tmp_path)
    assert [item.id for item in found.items] == ["team/a"]
    [problem] = found.problems
    assert problem.severity == "warning"
    assert problem.message.startswith(reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("---\nname: a\n---\n# A\n\nTie a knot.", "The skill has no description, so its first"),
        ("---\nname: a\ndescription: [x]\n---\nTie a knot.", "The skill has no description"),
        ("# A\n\nTie a knot.\n\nMore.", "The skill has neither name nor description"),
        ("# A\n\n> Tie a knot.\n\n- a list", "The skill has neither name nor description"),
    ],
)
def test_a_skill_without_description_is_described_by_its_first_paragraph(
    tmp_path: Path, text: str, reason: str
) -> None:
    """Claude Code does the same; thousands of shared skills have no front matter."""
    write(tmp_path / "a" / "SKILL.md", text)
    found = scan(tmp_path)
    [item] = found.items
    assert (item.id, item.name, item.description) == ("team/a", "a", "Tie a knot.")
    [problem] = found.problems
    assert (problem.severity, problem.item) == ("warning", "team/a")
    assert problem.message.startswith(reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("---\nname: a\n---\n", "The skill has no description"),
        ("---\nname: a\ndescription: [x]\n---\n$ARGUMENTS", "The skill has no description"),
        ("# A heading alone", "The skill has no description"),
        (
            "<!-- of us -->\n---\nname: a\ndisable-model-invocation: true\n---\nb",
            "The skill has front",
        ),
        ('+++\nname = "a"\ndescription = "d"\n\nbody', "The skill has front matter that"),
        ("---\nname: a\ndescription: d", "The front matter is not closed"),
        ("", "The file is empty"),
    ],
)
def test_a_broken_skill_is_an_error_and_counts_as_unread(
    tmp_path: Path, text: str, reason: str
) -> None:
    """The other skills are loaded, and the broken skill's indexed item is kept."""
    skill(tmp_path, "good", "name: good\ndescription: d")
    write(tmp_path / "a" / "SKILL.md", text)
    found = scan(tmp_path)
    assert [item.name for item in found.items] == ["good"]
    assert [problem.severity for problem in found.problems] == ["error"]
    assert found.problems[0].message.startswith(reason)
    assert found.unread == {"team/a"}
    assert found.keeps("team/a")
    assert not found.keeps("team/gone")


def test_a_folder_named_like_a_skill_file_is_reported(tmp_path: Path) -> None:
    """A ``SKILL.md`` that is a folder neither blocks the scan nor hides other skills."""
    (tmp_path / "a" / "SKILL.md").mkdir(parents=True)
    found = scan(tmp_path)
    assert found.unread == {"team/a"}
    assert messages(found, tmp_path)[0].startswith(
        "a/SKILL.md: The file was not read: it is not a regular file"
    )


@pytest.mark.parametrize("front", ["disable-model-invocation: true", "metadata: {internal: true}"])
def test_a_skill_hidden_by_its_author_is_left_out(tmp_path: Path, front: str) -> None:
    """It yields no item and no problem, and only the list of skipped files names the reason."""
    skill(tmp_path, "a", f"name: a\ndescription: d\n{front}")
    found = scan(tmp_path)
    [passed] = found.passed_over
    assert passed.path == str(tmp_path / "a/SKILL.md")
    assert front.partition(":")[0] in passed.reason
    assert found == Scan(items=[], passed_over=[passed])
    command = write(tmp_path / "commands" / "b.md", f"---\n{front}\n---\nDo it.")
    commands = MarkdownSkills(name="commands", path=tmp_path / "commands").scan()
    assert [one.path for one in commands.passed_over] == [str(command)]
    assert commands.items == []


def test_two_skills_of_one_name_are_both_found_and_the_later_is_reported(tmp_path: Path) -> None:
    """A problem says that the later skill is shadowed by the earlier one."""
    skill(tmp_path, "one/review", "name: review\ndescription: a")
    skill(tmp_path, "two/review", "name: review\ndescription: b")
    found = scan(tmp_path)
    assert [item.id for item in found.items] == ["team/one/review", "team/two/review"]
    [problem] = found.problems
    assert problem.item == "team/two/review"
    assert "shadowed by team/one/review" in problem.message


def test_of_two_skills_with_one_id_the_second_is_left_out(tmp_path: Path) -> None:
    """The root is a skill and contains another skill in a folder of the root's name."""
    skill(tmp_path / "pdf", ".", "name: pdf\ndescription: a")
    skill(tmp_path / "pdf", "pdf", "name: pdf\ndescription: b")
    found = scan(tmp_path / "pdf")
    assert [item.description for item in found.items] == ["a"]
    assert found.problems[0].severity == "error"


def test_control_characters_are_removed_from_descriptions(tmp_path: Path) -> None:
    """A control character that is escaped in YAML is also removed."""
    skill(tmp_path, "a", 'name: a\ndescription: "\\x1b[31mred\\nline"')
    assert scan(tmp_path).items[0].description == "[31mred line"


def test_the_known_roots_are_relative_and_distinct() -> None:
    """The shared root comes first."""
    for roots in (PROJECT_ROOTS, HOME_ROOTS):
        assert roots[0] == ".agents/skills"
        assert len(set(roots)) == len(roots)
        assert not any(root.startswith("/") or ".." in root for root in roots)


@pytest.mark.parametrize(
    ("filename", "text"),
    [
        ("skill.json", '{"name": "Mail", "description": "Send it.", "tags": "a,b", "inputs": {}}'),
        ("manifest.toml", 'name="Mail"\ndescription="Send it."\ntags=["a","b"]\n[inputs]'),
        ("skill.yml", "name: Mail\ndescription: Send it.\ntags: [b, a]\ninputs: {}"),
    ],
)
def test_a_manifest_becomes_an_item(tmp_path: Path, filename: str, text: str) -> None:
    """JSON, TOML and YAML give equal items, and unknown fields are kept."""
    write(tmp_path / "mail" / filename, text)
    write(tmp_path / "mail" / "__init__.py", "raise SystemExit('never run')")
    [item] = PythonSkills(name="py", path=tmp_path).scan().items
    assert (item.id, item.name, item.description) == ("py/mail", "Mail", "Send it.")
    assert item.tags == ("a", "b")
    assert item.extra == {"inputs": {}}


def test_only_one_manifest_of_a_folder_is_read(tmp_path: Path) -> None:
    """A ``skill.*`` file takes precedence over a ``manifest.*`` file."""
    write(tmp_path / "a" / "manifest.json", '{"name": "web app", "description": "no"}')
    write(tmp_path / "a" / "skill.yaml", "description: yes")
    [item] = PythonSkills(name="py", path=tmp_path).scan().items
    assert (item.name, item.description) == ("a", "yes")


@pytest.mark.parametrize("text", ['{"name": 1,}', "[]", '{"name": "a"}', "3"])
def test_a_broken_manifest_is_an_error_and_counts_as_unread(tmp_path: Path, text: str) -> None:
    """Invalid syntax, a list, a number and a missing description are errors."""
    write(tmp_path / "a" / "skill.json", text)
    found = PythonSkills(name="py", path=tmp_path).scan()
    assert found.items == []
    assert found.unread == {"py/a"}
    assert found.problems[0].severity == "error"


def test_a_markdown_skill_is_named_after_its_file(tmp_path: Path) -> None:
    """The description is the first paragraph, without headings and badges."""
    write(
        tmp_path / "team" / "deploy-app.md",
        "# Deploy\n\n[![badge](x)](y)\n\n<!-- a\n\nnote -->\n\nRoll out\nthe app.\n\nMore.",
    )
    write(tmp_path / "SKILL.md", "not mine")
    [item] = MarkdownSkills(name="md", path=tmp_path).scan().items
    assert (item.id, item.name) == ("md/team/deploy-app", "deploy-app")
    assert item.description == "Roll out the app."


def test_the_placeholder_for_arguments_is_left_out_of_a_description(tmp_path: Path) -> None:
    """``$ARGUMENTS`` becomes an ellipsis, so that no search matches it."""
    write(tmp_path / "fix.md", "Fix the issue $ARGUMENTS now.")
    write(tmp_path / "run.md", "$ARGUMENTS")
    found = MarkdownSkills(name="md", path=tmp_path).scan().items
    assert [item.description for item in found] == ["Fix the issue … now.", ""]


def test_the_front_matter_of_a_markdown_skill_takes_precedence(tmp_path: Path) -> None:
    """Name and description come from the front matter."""
    write(tmp_path / "a.md", "---\nname: Roll Out\ndescription: Ship it.\n---\nBody.")
    [item] = MarkdownSkills(name="md", path=tmp_path).scan().items
    assert (item.name, item.description, item.body) == ("Roll Out", "Ship it.", "Body.")


def test_escaped_line_ends_in_a_description_are_line_ends(tmp_path: Path) -> None:
    """Claude Code writes them as backslash and n for agents; other backslashes are kept."""
    write(tmp_path / "a.md", "---\ndescription: Reviews.\\n\\nUser: go\\nEnd.\n---\nBody.")
    write(tmp_path / "b.md", "---\ndescription: In C:\\new.\n---\nBody.")
    found = MarkdownSkills(name="md", path=tmp_path).scan().items
    assert [item.description for item in found] == ["Reviews. User: go End.", "In C:\\new."]


def test_a_markdown_skill_without_a_paragraph_is_loaded_with_a_warning(tmp_path: Path) -> None:
    """It has an empty description and can still be found by its name."""
    write(tmp_path / "a.md", "# Only a heading")
    found = MarkdownSkills(name="md", path=tmp_path).scan()
    assert found.items[0].description == ""
    assert found.problems[0].severity == "warning"


def test_a_gemini_command_is_named_like_in_the_host(tmp_path: Path) -> None:
    """The name consists of folders and file; the prompt replaces a missing description."""
    write(
        tmp_path / "git" / "commit.toml",
        'description = "Writes a message."\nprompt = """\nLook at:\n!{git diff --staged}\n"""',
    )
    write(tmp_path / "explain.toml", 'prompt = "Explain {{args}} to me.\\n\\nBriefly."')
    write(tmp_path / "args.toml", 'prompt = "{{args}}"')
    write(tmp_path / "none.toml", 'description = "Nothing."')
    found = GeminiCommands(name="g", path=tmp_path).scan()
    assert [(item.id, item.name, item.description, item.body) for item in found.items] == [
        ("g/args", "args", "", "{{args}}"),
        ("g/explain", "explain", "Explain … to me.", "Explain {{args}} to me.\n\nBriefly."),
        ("g/git/commit", "git:commit", "Writes a message.", "Look at:\n!{git diff --staged}"),
    ]
    assert not any(item.extra for item in found.items)
    assert messages(found, tmp_path) == [
        "none.toml: The command has no `prompt`, so it was left out; write what it asks for."
    ]
    assert found.unread == {"g/none"}


def test_every_procedure_of_a_neuroscript_file_becomes_an_item(tmp_path: Path) -> None:
    """The purpose is the description; the rest of the comment and the code are the body."""
    write(tmp_path / "geometry" / "area.ns.txt", AREA)
    found = NeuroScript(name="ns", path=tmp_path).scan()
    area, bare = found.items
    assert area.id == "ns/geometry/area/CalculateArea"
    assert area.description == "Calculates the area of a rectangle."
    assert area.extra == {"arguments": ["width", "height"]}
    assert area.body.startswith("CalculateArea(width, height)\n\n## Inputs\n\n- width: number")
    assert "## Algorithm\n\nMultiply width by height." in area.body
    assert area.body.endswith("RETURN width * height\nEND\n```")
    assert (bare.name, bare.description) == ("Bare", "")
    assert messages(found, tmp_path) == [
        "geometry/area.ns.txt:14: Bare has no PURPOSE; say in its COMMENT block what it does."
    ]


def test_arguments_of_a_procedure_may_be_on_several_lines() -> None:
    """All arguments are read, and the line numbers of later procedures are correct."""
    text = "DEFINE PROCEDURE B(\n a,\n b)\nCOMMENT:\nPURPOSE: x\nENDCOMMENT\nDEFINE PROCEDURE C()\n"
    found = [(one.name, one.arguments, one.line) for one in procedures(text)]
    assert found == [("B", ["a", "b"], 1), ("C", [], 7)]
    assert [one.fields for one in procedures(text)] == [{"PURPOSE": "x"}, {}]
    assert list(procedures("DEFINE PROCEDURE B(\n")) == []


def test_an_unclosed_comment_leaves_out_only_its_procedure(tmp_path: Path) -> None:
    """The error names the line, and the file's indexed items are kept."""
    open_comment = "DEFINE PROCEDURE Broken(a)\nCOMMENT:\nPURPOSE: x\nEND\n"
    write(tmp_path / "a.ns.txt", open_comment + AREA)
    found = NeuroScript(name="ns", path=tmp_path).scan()
    assert [item.name for item in found.items] == ["CalculateArea", "Bare"]
    assert (found.problems[0].severity, found.problems[0].line) == ("error", 1)
    assert found.keeps("ns/a/Broken")


def test_a_neuroscript_file_without_procedures_is_reported(tmp_path: Path) -> None:
    """It yields no items and one problem."""
    write(tmp_path / "a.ns.txt", "EMIT 1")
    found = NeuroScript(name="ns", path=tmp_path).scan()
    assert (found.items, found.unread) == ([], frozenset())
    assert "defines no procedure" in found.problems[0].message


def test_built_in_skills_are_described_by_their_beginning() -> None:
    """The description is the first 500 characters; an empty text is an error."""
    found = BuiltinSkills(skills={"b": "x" * 600, "a": "Say hello.", "c": " "}).scan()
    assert [item.id for item in found.items] == ["builtin/a", "builtin/b"]
    assert found.items[1].description == "x" * 500
    assert found.items[1].body == "x" * 600
    assert [problem.item for problem in found.problems] == ["builtin/c"]


def test_the_text_of_a_python_skill_is_extracted(tmp_path: Path) -> None:
    """Name and description are returned; None without a valid manifest or outside the folder."""
    write(tmp_path / "skills" / "mail" / "skill.json", '{"name": "Mail", "description": "Send."}')
    write(tmp_path / "skills" / "bad" / "skill.json", "{")
    write(tmp_path / "skills" / "bare" / "main.py", "")
    write(tmp_path / "secret" / "skill.json", '{"name": "S", "description": "s"}')
    (tmp_path / "skills" / "link").symlink_to(tmp_path / "secret")
    root = tmp_path / "skills"
    assert extract_python_skill_text(root, "mail") == ("Mail", "Send.")
    for skill_id in ("bad", "bare", "missing", "link", "../secret", "", ".", "a\0b"):
        assert extract_python_skill_text(root, skill_id) is None
    assert extract_python_skill_text(str(root), "mail") == ("Mail", "Send.")


def test_the_text_of_a_markdown_skill_is_extracted(tmp_path: Path) -> None:
    """The file's name and first paragraph are returned; None if the file cannot be read."""
    write(tmp_path / "greet.md", "# Greet\n\nSay hello\nnicely.\n\nThen stop.")
    assert extract_markdown_skill_text(tmp_path / "greet.md") == ("greet", "Say hello nicely.")
    assert extract_markdown_skill_text(tmp_path / "missing.md") is None
    assert extract_markdown_skill_text(f"{tmp_path}/greet.md") == ("greet", "Say hello nicely.")


def test_the_text_of_a_built_in_skill_is_extracted() -> None:
    """The name and the first 500 characters are returned."""
    assert extract_builtin_skill_text("a", "x" * 501) == ("a", "x" * 500)


def test_a_folder_without_a_skill_is_reported_with_the_reason(tmp_path: Path) -> None:
    """The file may be missing, misnamed, or a broken link."""
    skill(tmp_path, "good", "name: good\ndescription: d")
    write(tmp_path / "renamed" / "Skill.md", "x")
    write(tmp_path / "other" / "notes.md", "x")
    write(tmp_path / "gone" / "notes.md", "x")
    (tmp_path / "gone" / "SKILL.md").symlink_to("/nowhere/SKILL.md")
    skill(tmp_path, "un\x07clean", "name: unclean\ndescription: its name is warned of")
    found = {one.path.rpartition("/")[2]: one.reason for one in scan(tmp_path).passed_over}
    assert found == {
        "gone": "its SKILL.md is a link that leads nowhere, or out of the source",
        "other": "it has no SKILL.md",
        "renamed": "it has no SKILL.md, only Skill.md",
    }
