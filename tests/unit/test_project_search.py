"""A search in a project's files returns ordered results with snippets."""

import gc
import re
import string
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from repertory.catalogue.item import Item, Kind
from repertory.errors import StoreError, UsageError
from repertory.index.edge import EdgeStore
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Collection, Point
from repertory.project_search.file import File, folded
from repertory.project_search.files import ProjectFiles
from repertory.project_search.folder import Folder
from repertory.project_search.fuzzy import FuzzyMatch, fuzzy_matches
from repertory.project_search.query import MAX_RESULTS, Field, ProjectQuery, SearchType
from repertory.project_search.search import ProjectSearch, exact_matches
from repertory.project_search.snippets import CUT, MAX_LENGTH, place_of, place_of_word, snippet
from repertory.project_search.word_index import WordIndexer
from repertory.search.engine import SearchEngine
from tests.support.builders import no_model, write
from tests.support.points import DIMENSION, point

FIELDS = SearchType.ALL.fields
TEXTS = (Field.TITLE, Field.CONTENT, Field.SYNOPSIS)
# Only a few letters, so that words often match; some fold to several letters or are not ASCII.
TEXT = st.text(alphabet="abAB ßİſéΣς\n.😀", max_size=12)
WORD = st.text(alphabet=string.ascii_lowercase, min_size=5, max_size=12)
# The keyword index leaves out "für", a stop word.
OF_SCRIPTS = st.lists(st.sampled_from(["für", "f\u0302ur", "q", "日", "1", "٣", "_", " "])).map(
    "".join
)


def file(number: int, title: str, content: str = "", synopsis: str = "") -> File:
    """A searchable file."""
    return File(
        id=f"docs/{number}.md",
        place=f"{number}.md",
        title=title.casefold(),
        name="",
        content=content.casefold(),
        synopsis=synopsis.casefold(),
    )


def fuzzy_results(
    files: Sequence[File],
    query: str,
    *,
    threshold: float = 0.3,
    fields: Sequence[Field] = FIELDS,
) -> list[FuzzyMatch]:
    """The results of a fuzzy search."""
    return list(fuzzy_matches(WordIndexer().of(files), query.casefold(), fields, threshold))


def document(place: str, title: str, body: str = "", synopsis: str = "") -> Item:
    """A document of a project at ``/project``."""
    return Item(
        id=f"docs/{place}",
        kind=Kind.DOCUMENT,
        name=title,
        source="docs",
        description=synopsis,
        body=body,
        path=f"/project/{place}",
    )


class Project:
    """An index whose items change."""

    def __init__(self, collection: Collection, reader: ThreadPoolExecutor) -> None:
        self.collection = collection
        self._reader = reader
        self._keywords = KeywordIndex.empty()
        self._revision = 0

    def engine(self, *items: Item, removed: Sequence[str] = ()) -> SearchEngine:
        """The engine of the index after a change."""
        self._revision += 1
        self.collection.upsert([self._point(item) for item in items])
        self.collection.delete_items(removed, self._revision)
        self._keywords = self._keywords.updated(removed, items)
        return SearchEngine(
            keywords=self._keywords,
            collection=self.collection,
            embedding=no_model,
            reader=self._reader,
        )

    def _point(self, item: Item) -> Point:
        record = msgspec.to_builtins(item)
        return point(item.id, revision=self._revision, kind=item.kind, record=record)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """An empty index."""
    store = EdgeStore(tmp_path / "data")
    with store.create("project", DIMENSION) as collection, ThreadPoolExecutor(1) as reader:
        yield Project(collection, reader)


@pytest.fixture
def search() -> ProjectSearch:
    """A search with empty caches."""
    return ProjectSearch(Path("/project"))


@given(texts=st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=8), query=TEXT.filter(str.strip))
def test_an_exact_search_finds_exactly_the_files_that_contain_the_query(
    texts: list[tuple[str, str, str]], query: str
) -> None:
    """Case is ignored. The first field that contains the query is reported."""
    files = [file(number, *three) for number, three in enumerate(texts)]
    wanted = query.casefold()
    expected = {
        f"docs/{number}.md": next(
            field for field, text in zip(TEXTS, three, strict=True) if wanted in text.casefold()
        )
        for number, three in enumerate(texts)
        if any(wanted in text.casefold() for text in three)
    }
    found = [(one.id, field) for one, field in exact_matches(files, wanted, FIELDS)]
    assert dict(found) == expected
    assert len(found) == len(expected)
    for field in FIELDS:
        alone = {one.id for one, _ in exact_matches(files, wanted, (field,))}
        assert alone == {one.id for one in files if wanted in getattr(one, field)}


@given(texts=st.lists(OF_SCRIPTS, min_size=1, max_size=4), data=st.data())
def test_the_word_index_excludes_no_file_that_contains_the_query(
    texts: list[str], data: st.DataObject
) -> None:
    """This holds for any script, and after some files were replaced."""
    files = tuple(file(number, "", folded(text)) for number, text in enumerate(texts))
    content = data.draw(st.sampled_from(files)).content
    start = data.draw(st.integers(0, len(content)))
    query = content[start : data.draw(st.integers(start, len(content)))]
    words = WordIndexer()
    for now in (files[::2], files):
        may = {*words.of(now).candidates(query, FIELDS)}
        assert {one for one in now if query in one.content} <= may


def test_the_word_index_excludes_files_without_the_words_of_the_query() -> None:
    """A file needs a word of the query as part of a word in a searched field."""
    files = (file(1, "", "getusername()"), file(2, "user names"), file(3, "", "größe"))
    words = WordIndexer().of(files)
    assert [one.place for one in words.candidates("username", FIELDS)] == ["1.md", "3.md"]
    assert [*words.candidates("user", (Field.CONTENT,))] == [files[0], files[2]]
    assert words.candidates("() ->", FIELDS) is files


@given(title=st.lists(WORD, min_size=1, max_size=4), data=st.data())
def test_one_edit_in_a_word_of_a_title_is_tolerated(title: list[str], data: st.DataObject) -> None:
    """At the default threshold, one letter may be removed, added, replaced or swapped."""
    word = data.draw(st.sampled_from(title))
    at = data.draw(st.integers(0, len(word) - 2))
    edited = data.draw(
        st.sampled_from(
            [
                word[:at] + word[at + 1 :],
                word[:at] + "q" + word[at:],
                word[:at] + "q" + word[at + 1 :],
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            ]
        )
    )
    [found] = fuzzy_results([file(1, " ".join(title))], edited)
    assert found.field is Field.TITLE
    assert found.score > 0.7


@given(
    texts=st.lists(st.tuples(*[st.text("abcd é", max_size=20)] * 3), max_size=6),
    query=st.text("abcde é", min_size=1, max_size=12),
    thresholds=st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted),
)
def test_a_higher_threshold_keeps_all_matches(
    texts: list[tuple[str, str, str]], query: str, thresholds: list[float]
) -> None:
    """Their relevance does not decrease."""
    files = [file(number, *three) for number, three in enumerate(texts)]
    narrow, wide = (
        {one.file.id: one.score for one in fuzzy_results(files, query, threshold=threshold)}
        for threshold in thresholds
    )
    assert all(wide[one] >= score for one, score in narrow.items())


@given(before=TEXT, match=st.text(alphabet="aBßİx", min_size=1, max_size=120), after=TEXT)
def test_a_snippet_is_short_and_contains_the_match(before: str, match: str, after: str) -> None:
    """It has at most 100 characters, marks its cuts, and shows as much of the match as fits."""
    text = before * 20 + match + after * 20
    query = match.casefold()
    start, end = place_of(text, query)
    shown = snippet(text, start, end)
    bare = shown.removeprefix(CUT).removesuffix(CUT)
    assert len(shown) <= MAX_LENGTH
    assert query in text[start:end].casefold()
    room = MAX_LENGTH - 2 * len(CUT)
    if len(text) <= MAX_LENGTH or end - start <= room:
        assert query in bare.casefold()
    else:
        assert bare == text[start : start + room]
    assert (shown == text.replace("\n", " ")) == (len(text) <= MAX_LENGTH)


@pytest.mark.parametrize(
    ("text", "word", "place"),
    [
        ("concatenate a cat", "cat", "cat"),
        ("Straße der CAFÉS", "cafes", "CAFÉS"),
        ("read_file2go", "go", "go"),
        ("今日は天気です", "天気", "天気"),
        ("सारांश और सार", "सार", "सार"),
        ("nothing", "cat", ""),
    ],
)
def test_a_word_is_located_in_the_original_text(text: str, word: str, place: str) -> None:
    """Whole words are preferred to parts of words; accents are ignored."""
    start, end = place_of_word(text, word)
    assert text[start:end] == place


def test_a_number_is_not_located_within_a_longer_number() -> None:
    """Neighbouring digits belong to a number like neighbouring letters to a word."""
    assert [place_of_word(text, "12") for text in ("312 12", "3.12", "v12")] == [
        (4, 6),
        (2, 4),
        (1, 3),
    ]


def test_a_vowel_sign_does_not_end_a_word() -> None:
    """A Hindi word is one word, and a misspelt one is not an exact match."""
    files = [file(1, "one", "यह सारांश बनाता है"), file(2, "two", "तब तक काम करता है")]
    assert [(one.file.place, one.word) for one in fuzzy_results(files, "सारांष")] == [
        ("1.md", "सारांश")
    ]
    assert fuzzy_results(files, "सारांष")[0].score == pytest.approx(5 / 6, abs=0.001)
    assert fuzzy_results(files, "किताब") == []
    assert place_of_word("सारांश और सार", "सार")[0] == len("सारांश और ")


def test_a_query_of_several_words_can_match_partly() -> None:
    """Files rank by the share of the words that they match; stop words do not count."""
    files = [
        file(1, "one", "the queue is full"),
        file(2, "two", "a retry of the job queue"),
        file(3, "three", "nothing of it"),
    ]
    found = fuzzy_results(files, "how to retyr the queue")
    assert [one.file.place for one in found] == ["2.md", "1.md"]
    assert [one.score for one in found] == [pytest.approx(0.9), pytest.approx(0.5)]
    assert found[0].word == "queue"


def test_threshold_0_is_exact_and_threshold_1_matches_everything() -> None:
    """With threshold 0 all words must match exactly; with threshold 1 any file matches."""
    files = [file(1, "rotation of keys"), file(2, "rotations"), file(3, "")]
    assert [one.file.place for one in fuzzy_results(files, "keys rotation", threshold=0)] == [
        "1.md"
    ]
    assert {one.file.place for one in fuzzy_results(files, "keys", threshold=1)} == {
        "1.md",
        "2.md",
        "3.md",
    }
    assert fuzzy_results(files, "...", threshold=0.5) == []


def test_a_title_is_also_compared_as_a_whole() -> None:
    """A missing space is an edit like any other."""
    assert fuzzy_results([file(1, "Read File")], "readfile")[0].score == pytest.approx(
        8 / 9, abs=1e-4
    )


def test_a_fuzzy_search_uses_only_its_fields() -> None:
    """A search in contents ignores titles."""
    files = [file(1, "rotation", "nothing"), file(2, "nothing", "rotation")]
    [found] = fuzzy_results(files, "rotatoin", fields=(Field.CONTENT,))
    assert (found.file.place, found.field) == ("2.md", Field.CONTENT)


def test_words_are_read_once_and_removed_with_their_files() -> None:
    """Unused words are removed from the vocabulary once they are the majority."""
    words = WordIndexer()
    one, two, three = file(1, "alpha beta"), file(2, "gamma"), file(3, "delta")
    assert list(words.of(first := (one, two)).vocabulary) == ["alpha", "beta", "gamma"]
    assert words.of(first) is words.of(first)
    assert "alpha" in words.of((two,)).vocabulary
    assert list(words.of((two, three)).vocabulary) == ["gamma", "delta"]


def test_files_are_documents_and_skills_by_path(project: Project) -> None:
    """Tools have no files; paths inside the project are relative to it."""
    skill = Item(id="user/skill", kind=Kind.SKILL, name="skill", source="user", path="/home/S.md")
    builtin = Item(id="builtin/hi", kind=Kind.SKILL, name="hi", source="builtin", body="Hello.")
    tool = Item(id="server__tool", kind=Kind.TOOL, name="tool", source="server", server="server")
    engine = project.engine(tool, skill, builtin, document("b/a.md", "A"), document("a.md", "A"))
    files = ProjectFiles(Path("/project")).of(engine)
    assert [one.place for one in files] == ["/home/S.md", "a.md", "b/a.md", "builtin/hi"]


def test_files_inside_the_folder_are_read_from_it_and_others_from_the_catalogue(
    project: Project, tmp_path: Path
) -> None:
    """An indexed file inside the folder that does not exist there is not searched."""
    folder = tmp_path / "folder"
    write(folder / "skills/x/SKILL.md", "---\nname: x\n---\n# Zebra\n")
    (folder / ".claude").mkdir()
    (folder / ".claude/skills").symlink_to("../skills")
    inside = Item(
        id="project/x",
        kind=Kind.SKILL,
        name="x",
        source="project",
        path=str(folder / ".claude/skills/x/SKILL.md"),
    )
    gone = msgspec.structs.replace(inside, id="docs/gone.md", path=str(folder / "gone.md"))
    home = Item(
        id="user/y", kind=Kind.SKILL, name="y", source="user", body="Zebra", path="/home/y/SKILL.md"
    )
    engine = project.engine(inside, gone, home)
    search = ProjectSearch(folder, Folder(folder))
    content = search.search(engine, ProjectQuery(search_query="zebra")).content
    assert re.findall(r"   (?:ID|Path): (.*)", content) == [
        *("user/y", "/home/y/SKILL.md"),
        *("project/x", "skills/x/SKILL.md"),
    ]
    again = search.search(None, ProjectQuery(search_query="zebra"))  # the index is unavailable
    assert re.findall(r"   ID: (.*)", again.content) == ["project/x"]


def test_a_file_with_several_items_has_its_own_id(project: Project, tmp_path: Path) -> None:
    """The name of one of its items would be misleading. A file of two sources has an item's id."""
    file, other = write(tmp_path / "a.ns", "QuietBerths WeeklyOccupancy"), tmp_path / "b.md"
    write(other, "WeeklyOccupancy")
    engine = project.engine(
        *(
            Item(id=f"p/{name}", kind=Kind.SKILL, name=name, source="p", path=str(file))
            for name in ("QuietBerths", "WeeklyOccupancy")
        ),
        *(
            Item(id=f"{name}/b", kind=Kind.DOCUMENT, name="b", source=name, path=str(other))
            for name in ("docs", "more")
        ),
    )
    search = ProjectSearch(tmp_path, Folder(tmp_path))
    content = search.search(engine, ProjectQuery(search_query="weeklyoccupancy")).content
    shown = re.findall(r"^\d\. (.*)\n   ID: (.*)", content, re.MULTILINE)
    assert shown == [("a.ns", "files/a.ns"), ("b.md", "docs/b")]


def test_items_are_found_by_the_names_of_their_files(
    project: Project, search: ProjectSearch
) -> None:
    """Names of folders outside the project are not searched because they may be private."""
    outside = msgspec.structs.replace(document("x", "Of alice"), path="/home/alice/files/notes.md")
    engine = project.engine(document("guides/rotation.md", "Keys"), outside)
    for text, count in (
        ("rotation", 1),
        ("guides/", 1),
        ("notes.md", 1),
        ("files", 0),
        ("home", 0),
    ):
        found = search.search(engine, ProjectQuery(search_query=text, search_type=SearchType.TITLE))
        assert (text, found.total_results) == (text, count)
        if count:
            assert "   Match: title\n" in found.content


def test_only_changed_files_are_read_again(project: Project) -> None:
    """Unchanged files are the same objects, and the old engine can be freed."""
    texts = ProjectFiles(Path("/project"))
    engine = project.engine(document("a.md", "A"), document("b.md", "B"))
    one, two = texts.of(engine)
    assert texts.of(engine) == (one, two)
    gone = weakref.ref(engine)
    del engine
    gc.collect()
    assert gone() is None
    changed, same = texts.of(project.engine(document("a.md", "A2")))
    assert (changed.title, same) == ("a2", two)
    assert texts.of(project.engine(removed=["docs/a.md"])) == (two,)


def test_concurrent_first_searches_agree(project: Project, search: ProjectSearch) -> None:
    """Searches in several threads get the same answer."""
    engine = project.engine(*(document(f"{n}.md", f"Title {n}") for n in range(50)))
    query = ProjectQuery(search_query="titel", fuzzy_search=True)
    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(lambda _: search.search(engine, query).content, range(16)))
    assert len(answers) == 1
    answer = answers.pop()
    assert "Results: 20" in answer
    assert answer.endswith(
        "\n\nMore files match: raise maxResults, or make the query more specific.\n"
    )
    whole = msgspec.structs.replace(query, max_results=50)
    assert "More files match" not in search.search(engine, whole).content


@pytest.mark.parametrize("query", ["e", "E", " e ", "猫", "a b"])
def test_a_fuzzy_search_needs_a_word_of_two_characters(
    project: Project, search: ProjectSearch, query: str
) -> None:
    """Nearly every file contains a given letter. An exact search does find it."""
    engine = project.engine(document("a.md", "Some Text, a e", "猫"), document("b.md", "e", "e"))
    for threshold in (0.0, 0.3, 1.0):
        fuzzy = ProjectQuery(search_query=query, fuzzy_search=True, threshold=threshold)
        assert search.search(engine, fuzzy).total_results == 0
    if query != "a b":
        exact = ProjectQuery(search_query=query.strip())
        assert search.search(engine, exact).total_results > 0


def test_one_letter_of_a_fuzzy_query_does_not_count() -> None:
    """Only the other words of the query count."""
    files = [file(1, "a b c"), file(2, "rotation x")]
    [found] = fuzzy_results(files, "a rotatoin")
    assert found.file.place == "2.md"
    assert found.score > 0.7


def test_the_number_of_results_is_limited(project: Project, search: ProjectSearch) -> None:
    """Any number may be requested, and at most a thousand results are returned."""
    engine = project.engine(
        *(document(f"{number}.md", "Title") for number in range(MAX_RESULTS + 1))
    )
    answer = search.search(engine, ProjectQuery(search_query="title", max_results=10**9))
    assert answer.total_results == MAX_RESULTS


def test_matches_of_titles_come_first(project: Project, search: ProjectSearch) -> None:
    """Other matches are ordered by path."""
    engine = project.engine(
        document("a.md", "Alpha", body="About retries."),
        document("b.md", "Beta", synopsis="Of retries."),
        document("c.md", "Retries"),
    )
    content = search.search(engine, ProjectQuery(search_query="RETRIES")).content
    assert [line for line in content.splitlines() if line.startswith("   Match")] == [
        "   Match: title",
        "   Match: content",
        "   Match: synopsis",
    ]


def test_a_fuzzy_search_finds_all_exact_matches(project: Project, search: ProjectSearch) -> None:
    """Both modes find matches within words and matches without any word."""
    engine = project.engine(
        document("a.md", "Alpha", body="getUserName() -> str"),
        document("b.md", "Beta", body="the sername"),
    )
    for text, count in (("sername", 2), ("() ->", 1), ("the", 1)):
        exact = search.search(engine, ProjectQuery(search_query=text))
        fuzzy = search.search(engine, ProjectQuery(search_query=text, fuzzy_search=True))
        assert exact.total_results == fuzzy.total_results == count
        assert "(100% relevance)" in fuzzy.content


@pytest.mark.parametrize("query_form", ["NFC", "NFD"])
@pytest.mark.parametrize("file_form", ["NFC", "NFD"])
def test_accents_are_found_in_any_unicode_normalisation(
    project: Project,
    tmp_path: Path,
    query_form: Literal["NFC", "NFD"],
    file_form: Literal["NFC", "NFD"],
) -> None:
    """Some editors and file systems store an accent as a separate character."""
    name = normalize(file_form, "Müller.md")
    write(tmp_path / "folder" / name, normalize(file_form, "Über Café-Preise.\n"))
    outside = document("b.md", "B", body=normalize(file_form, "Noch ein Café."))
    search = ProjectSearch(tmp_path / "folder", Folder(tmp_path / "folder"))
    engine = project.engine(msgspec.structs.replace(outside, path="/home/b.md"))
    for text, snippets in (
        ("CAFÉ", ["Über Café-Preise.", "Noch ein Café."]),
        ("müller", ["Müller.md"]),
    ):
        query = ProjectQuery(search_query=normalize(query_form, text))
        content = search.search(engine, query).content
        assert all(one in content for one in snippets), content


@pytest.mark.parametrize("query_end", ["\n", "\r\n"])
@pytest.mark.parametrize("file_end", ["\n", "\r\n"])
def test_lines_are_found_with_any_line_ends(
    project: Project, tmp_path: Path, query_end: str, file_end: str
) -> None:
    """A query may have been copied on another operating system."""
    file = tmp_path / "folder" / "a.txt"
    file.parent.mkdir()
    file.write_bytes(f"one{file_end}two lines{file_end}three".encode())
    search = ProjectSearch(tmp_path / "folder", Folder(tmp_path / "folder"))
    query = ProjectQuery(search_query=f"TWO lines{query_end}three")
    answer = search.search(project.engine(), query)
    assert answer.total_results == 1
    assert "one two lines three" in answer.content


def test_a_file_cannot_fake_results(project: Project, search: ProjectSearch) -> None:
    """A title, an id, a path or a text with line breaks is shown on one line."""
    fake = "x\n\n2. Fake\n   ID: docs/fake.md"
    engine = project.engine(document(f"{fake}.md", fake, fake))
    answer = search.search(engine, ProjectQuery(search_query="fake"))
    # The heading, an empty line, and the only result.
    assert len(answer.content.splitlines()) == 5 + 1 + 5


def test_a_long_query_is_not_repeated_whole(project: Project, search: ProjectSearch) -> None:
    """The answer to an agent has only its beginning."""
    query = ProjectQuery(search_query="word " * 150)
    assert len(search.search(project.engine(document("a.md", "A")), query).content) < 700


def test_a_deleted_file_is_left_out(project: Project, search: ProjectSearch) -> None:
    """The collection may be newer than the keyword index."""
    engine = project.engine(document("a.md", "Alpha"), document("b.md", "Also"))
    query = ProjectQuery(search_query="al")
    assert search.search(engine, query).total_results == 2
    project.collection.delete_items(["docs/b.md"], 2)
    assert search.search(engine, query).total_results == 1


def test_an_empty_project_is_reported(project: Project, search: ProjectSearch) -> None:
    """The answer is the same for any query."""
    answer = search.search(project.engine(), ProjectQuery(search_query="x", fuzzy_search=True))
    assert (answer.content, answer.total_results) == ("No files found in the project.", 0)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            ProjectQuery(search_query=" \n"),
            "^searchQuery parameter is required and cannot be empty$",
        ),
        (ProjectQuery(search_query="x" * 32_001), "32,001 characters"),
        (ProjectQuery(search_query="x", max_results=0), "maxResults is 0"),
        (ProjectQuery(search_query="x", threshold=1.5), "threshold is 1.5"),
        (ProjectQuery(search_query="x", threshold=float("nan")), "threshold is nan"),
    ],
)
def test_invalid_arguments_are_rejected(
    project: Project, search: ProjectSearch, query: ProjectQuery, message: str
) -> None:
    """The error names the argument and its value."""
    with pytest.raises(UsageError, match=message):
        search.search(project.engine(), query)


def test_an_unavailable_store_is_reported(search: ProjectSearch) -> None:
    """It is an error instead of an empty project."""
    with ThreadPoolExecutor(1) as reader:
        engine = SearchEngine(
            keywords=KeywordIndex.empty(),
            collection=None,
            embedding=no_model,
            reader=reader,
            degraded=["The store is away."],
        )
        with pytest.raises(StoreError, match="cannot be read now: The store is away"):
            search.search(engine, ProjectQuery(search_query="x"))


@given(query=st.text(min_size=1), threshold=st.floats(0, 1))
def test_any_query_is_answered(query: str, threshold: float) -> None:
    """Scores are between 0 and 1, best first."""
    assume(query.strip())
    files = [file(1, "Alpha beta", "gamma ß 今日は"), file(2, "", "", "İ 12 a1b2")]
    scores = [one.score for one in fuzzy_results(files, query, threshold=threshold)]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores)
