"""The documentation refers only to existing files, tests, figures and messages."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs" / "decisions"
MAP = ROOT / "ARCHITECTURE.md"
DOCUMENTS = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "deploy/*.md",
        "benchmarks/*.md",
        "examples/*.md",
        "plugin/*.md",
        "clients/typescript/*.md",
    )
    for path in ROOT.glob(pattern)
)
ROOTS = tuple(ROOT / name for name in ("", "shared/repertory", "services", "workers"))


def pages() -> list[Path]:
    """The pages of the decisions."""
    return sorted(DECISIONS.glob("[0-9]*.md"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_has_a_target(path: Path) -> None:
    """Relative links lead to files, and their fragments to headings there."""
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", path.read_text("utf-8")):
        file, _, fragment = target.partition("#")
        linked = (path.parent / file).resolve() if file else path
        assert linked.exists(), target
        if fragment:
            titles = re.findall(r"^#+ (.+)$", linked.read_text("utf-8"), re.MULTILINE)
            assert fragment in {re.sub(r"[^\w -]", "", t).lower().replace(" ", "-") for t in titles}


def test_every_module_in_the_architecture_exists() -> None:
    """A path in backticks is a file or folder of the repository or of one of its source roots."""
    named = re.findall(r"`([\w./]+(?:\.py|\.toml|/))`", MAP.read_text("utf-8"))
    assert len(named) > 60
    assert [name for name in named if not any((root / name).exists() for root in ROOTS)] == []


def test_the_architecture_names_every_key_in_redis() -> None:
    """These are the first parts of the keys that the adapters of the coordination use."""
    adapters = (ROOT / "shared/repertory/coordination").glob("*.py")
    texts = [one.read_text("utf-8") for one in adapters]
    used = {key for text in texts for key in re.findall(r'\.key\("([^"]+)"', text)}
    [named] = re.findall("its own keys in the namespace: ([^;]+);", MAP.read_text("utf-8"))
    assert {*re.findall("`([^`]+)`", named)} == used


def test_the_documents_stay_short() -> None:
    """The architecture takes ten minutes to read, a decision one."""
    assert len(MAP.read_text("utf-8").splitlines()) <= 160
    for page in pages():
        assert len(page.read_text("utf-8").splitlines()) <= 40, page.name


def test_every_decision_is_numbered_dated_and_listed() -> None:
    """Numbers have no gaps; the index has each decision's title and date."""
    index = (DECISIONS / "README.md").read_text("utf-8")
    for number, page in enumerate(pages(), start=1):
        text = page.read_text("utf-8")
        heading = re.match(rf"# {number:04}\. (.+)\n\nDate: (\d{{4}}-\d\d-\d\d)\n", text)
        assert heading, page.name
        assert f"[{number:04}]({page.name}) | {heading[2]} | {heading[1]} |" in index


def test_a_changed_decision_names_the_new_one() -> None:
    """A reader of the old page must find the current decision."""
    missing = [
        f"{old} does not name {page.name}"
        for page in pages()
        for line in re.findall(r"^(?:Changes|Replaces) .*", page.read_text("utf-8"), re.MULTILINE)
        for old in re.findall(r"\]\((\d[\w-]+\.md)\)", line)
        if f"]({page.name})" not in (DECISIONS / old).read_text("utf-8")
    ]
    assert missing == []


def test_every_sentence_about_failures_names_its_test() -> None:
    """Each claim about a failing component has a test."""
    check_tests_of(ROOT / "docs" / "failures.md")


def test_every_sentence_about_attacks_names_its_test() -> None:
    """Each claim about an attack has a test."""
    check_tests_of(ROOT / "docs" / "attacks.md")


def check_tests_of(page: Path) -> None:
    """Check that each linked test exists in the linked file, and that all links are used."""
    text, _, links = page.read_text("utf-8").partition("\n[")
    files = dict(re.findall(r"^\[?(\w+)\]: (\S+)$", links, re.MULTILINE))
    prose = re.sub(r"^#.*$|^- ", "", text, flags=re.MULTILINE)
    sentences = [" ".join(part.split()) for part in re.split(r"\.(?=\s|$)", prose)]
    assert [one for one in sentences if one and not re.search(r"\[test_\w+\]$", one)] == []
    assert len(sentences) > 30
    assert files.keys() == {*re.findall(r"\[(\w+)\]", text)}
    for name, file in files.items():
        assert re.search(rf"^(async )?def {name}\(", (page.parent / file).read_text(), re.M), name


def test_the_readme_has_the_measured_tokens() -> None:
    """Its table of tokens has the figures of the last run of the benchmarks."""
    measured = json.loads((ROOT / "benchmarks" / "results.json").read_bytes())["figures"]
    [hits] = [one for one in measured if one["name"].startswith("three hits for")]
    [listed] = [one for one in measured if one["name"].startswith("tools/list")]
    text = (ROOT / "README.md").read_text("utf-8")
    assert f'| three hits for "write down a note" | {hits["ours"]} | {hits["other"]} |' in text
    assert f"| the definitions of `search`, `get` and `call` | {listed['ours']} |" in text


def test_the_page_of_the_encoder_has_the_measured_figures() -> None:
    """Its table has the nDCG@10 of the last report on the ranking."""
    report = (ROOT / "benchmarks" / "RESULTS.md").read_text("utf-8")
    section = report.partition("## Our own encoder\n")[2].partition("\n## ")[0]
    figures = dict(re.findall(r"^\| (\w+) \| [\d,]+ \| (.+) \|$", section, re.MULTILINE))
    page = (ROOT / "encoder" / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (\w+), .+ \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE)
    assert len(rows) == 4
    for name, other, ours in rows:
        assert re.findall(r"([\d.]+) \(", figures[name]) == [other, ours], name


def test_every_message_of_the_troubleshooting_page_exists() -> None:
    """Its headings are parts of messages in the code."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    named = re.findall(r'^### "(.+)"$', page, re.MULTILINE)
    code = "".join(path.read_text("utf-8") for root in ROOTS[1:] for path in root.rglob("*.py"))
    said = re.sub(r'"\s*\n\s*f?"', "", code)
    assert len(named) > 15
    assert [one for one in named if one not in said] == []
