"""Reasons name the matched words, their fields and their corrections."""

import msgspec
import pytest

from repertory.catalogue.views import Section
from repertory.index.keywords.lexicon import QueryTerm
from repertory.search.answer import Hit, Term
from repertory.search.query import Query
from repertory.search.reasons import MAX_READ, MIN_LIKENESS, best_section, terms_of
from tests.support.builders import skill, tool
from tests.support.hybrid_search import hybrid_engine
from tests.support.keyword_search import keyword_engine

SCHEMA = {"type": "object", "properties": {"timezone": {"type": "string"}}}
LONG = "Converts times between places of the world. " * 12
ITEMS = [
    tool(
        "clock__convert_time",
        "Tells what hour it is elsewhere",
        tags=("travel",),
        input_schema=SCHEMA,
    ),
    tool(
        "world__shift",
        LONG,
        input_schema={"type": "object", "properties": {"meridian": {"type": "string"}}},
    ),
]


def first(text: str) -> Hit:
    """The best hit of a search."""
    return keyword_engine(ITEMS).search(Query(text=text, threshold=0.0)).hits[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("convert this for me now please", "Keywords in name (convert)"),
        ("which hour will there be", "Keywords in description (hour)"),
        ("anything about travel by ship", "Keywords in description (travel)"),
        ("a clock for the wall please", "Keywords in server (clock)"),
        ("whatever the timezone may happen to be", "Keywords in parameters (timezone)"),
        ("convert the hour of our lunch", "Keywords in name and description (convert, hour)"),
        (
            "convert the hour by timezone for lunch",
            "Keywords in name, description and parameters (convert, hour, timezone)",
        ),
        ("convert_times", "Fuzzy name match (convert_times → convert_time)"),
        (
            "hour convert time",
            "Keywords in name and description (hour, convert, time)",
        ),
        (
            "hour convrt time",
            "Fuzzy name match (hour convrt time → convert_time) + keywords in description (hour)",
        ),
        ("convrt this for me now please", "Keywords in name (convrt → convert)"),
        ("the timezoen of our lunch please", "Keywords in parameters (timezoen → timezone)"),
    ],
)
def test_a_reason_names_the_fields_of_matched_words(text: str, reason: str) -> None:
    """The most important field of each word is named, and corrections are shown."""
    assert first(text).reason == reason


def test_a_reason_shows_the_form_of_a_word_that_the_item_has() -> None:
    """If the item has another form with the same stem, the reason names that form."""
    engine = keyword_engine([skill("pay", "Pays several bills")])
    for typed, words in (("severence", "severence → several"), ("bill", "bills")):
        [hit] = engine.search(Query(text=typed, threshold=0)).hits
        assert hit.reason == f"Keywords in description ({words})"


def test_a_word_outside_the_shown_text_is_shown_whole() -> None:
    """The index has both the word and its stem; the reason shows the word."""
    engine = keyword_engine([tool("world__shift", f"{LONG} Knows each timezone.")])
    [hit] = engine.search(Query(text="time zones", threshold=0)).hits
    assert hit.reason == "Keywords (times, zones → timezone)"


def test_a_named_section_contains_the_listed_words() -> None:
    """The words are spelt as in the section, whatever forms the rest of the item has."""
    body = "# Loans\nBorrow it.\n## **Origin**\nProven owners of cracked vases.\n## Crates\nWood."
    engine = hybrid_engine([skill("museum", "Looks after art", body=body)])
    query = Query(text="provenence of vase and crack in the museum", threshold=0.0)
    [hit] = engine.search(query).hits
    assert hit.matched_in == "## **Origin**"
    assert "(provenence → proven, vases, cracked), in “Origin”" in hit.reason


def test_a_section_of_a_distant_meaning_is_named_only_for_its_words() -> None:
    """Otherwise the section with the words is named, or none."""
    about = "Looks after " + ", ".join(f"thing{number}" for number in range(60))
    body = "# Rare\nOf quuxly.\n# Loans\n" + "Crates go out, crates come back. " * 60
    engine = hybrid_engine([skill("museum-guide", about, body=body)])
    for text, reason, section in (
        ("a museum of quuxly, zorblax and vrendig", "Keywords (quuxly), in “Rare”", "# Rare"),
        ("a museum of zorblax, vrendig and sprokket", "Keywords in name (museum)", ""),
    ):
        query = Query(text=text, threshold=0.0)
        assert engine.rank(query).texts[0].candidates.sections  # "Loans", for the item's name
        [hit] = engine.search(query).hits
        assert (hit.reason, hit.matched_in) == (reason, section)


def test_words_of_a_name_are_not_attributed_to_a_section() -> None:
    """The name is the better evidence, also if the section of the nearest meaning has the words."""
    about = "Looks after " + ", ".join(f"thing{number}" for number in range(60))
    body = "# Rare\nOf quuxly.\n# Loans\n" + "Crates go out of the museum, crates come back. " * 60
    engine = hybrid_engine([skill("museum-guide", about, body=body)])
    name, both = "keywords in name (museum)", "keywords (crates, museum), in “Loans”"
    for text, reason in (("a museum of zorblax and vrendig", name), ("crates of a museum", both)):
        query = Query(text=text, threshold=0.0)
        assert engine.rank(query).texts[0].candidates.sections  # "Loans"
        [hit] = engine.search(query).hits
        assert hit.reason.lower().endswith(reason.lower())


def test_only_words_in_a_section_are_its_terms() -> None:
    """A section without the typed words has no terms; only the start of a long section is read."""
    section = Section(heading="## Origin", text="Owners of vases, the owner of a vase.")
    words = ("vases", "vase"), ("owning", "owner"), ("art", "art")
    terms = [QueryTerm(typed, stem, (stem,), (), 0.5) for typed, stem in words]
    assert terms_of(section, terms) == [
        Term(typed="vases", matched="vases", field="body"),
        Term(typed="owning", matched="owners", field="body"),
    ]
    assert terms_of(section, terms[2:]) == []
    long = Section(heading="## Origin", text="owners " * MAX_READ + "vases")
    assert [term.matched for term in terms_of(long, terms)] == ["owners"]


@pytest.mark.parametrize(
    ("typed", "stem"), [("ai", "ai"), ("api", "api"), ("apis", "api"), ("policy", "polici")]
)
def test_a_section_about_a_short_word_is_found(typed: str, stem: str) -> None:
    """The last letter of a stem may stand for a y, but is part of a word such as API."""
    word = QueryTerm(typed, stem, (stem,), (), 0.5)
    body = "## A map of apps\n\nApply at once.\n\n## AI, APIs and a policy\n\nNothing else."
    assert best_section(body, [word]).heading == "## AI, APIs and a policy"


def test_words_of_a_name_in_another_order_are_not_fuzzy_matches() -> None:
    """A match of the name is fuzzy only if one of its words was typed differently."""
    engine = keyword_engine([tool("bank__get_exchange_rate")])
    for typed, reason in (
        ("the exchange rate", "Keywords in name (exchange, rate)"),
        ("get exchange rates", "Fuzzy name match (get exchange rates → get_exchange_rate)"),
    ):
        [hit] = engine.search(Query(text=typed, threshold=0)).hits
        assert hit.reason == reason


def test_arguments_of_a_skill_are_searched_like_parameters() -> None:
    """Its manifest lists arguments as plain names or with descriptions; both are searched."""
    arguments = ["width", {"name": "sprite", "description": "The sheet of frames"}, {"x": 1}, 2]
    item = msgspec.structs.replace(skill("cut", "Cuts it"), extra={"arguments": arguments})
    engine = keyword_engine([item])
    for typed in ("width", "sprite", "frames"):
        [hit] = engine.search(Query(text=typed, threshold=0)).hits
        assert hit.evidence.terms[0].typed == typed


def test_a_reason_does_not_guess_the_field_of_a_word() -> None:
    """If the index's short description lacks the word, the reason names no field."""
    hit = first("the meridian of our lunch please")
    assert hit.id == "world__shift"
    assert hit.reason == "Keywords (meridian)"
    assert hit.evidence.terms == (Term(typed="meridian", matched="meridian"),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("postmortem", "postmortem"),
        ("post-mortem", "postmortem"),
        ("SOC2", "soc2"),
        ("seo-audit", "seo-audit"),
        ("dependencies", "dependency"),
        ("log in with passkeys", "passkeys"),
        ("shortcodes", "shortcode"),
    ],
)
def test_a_reason_names_whole_words(text: str, words: str) -> None:
    """The item's own words are named, not their parts; a plural is not shown as a misspelling."""
    description = (
        "Writes a postmortem on a dependency, as SOC2 and an seo-audit want it; passkeys and keys;"
        " the code of a shortcode"
    )
    engine = hybrid_engine([skill("writer", description)])
    [hit] = engine.search(Query(text=text, threshold=0.0)).hits
    assert hit.reason.endswith(f"({words})")


@pytest.mark.parametrize(
    ("text", "is_fuzzy"), [("undo a deployment", False), ("roll backs deployment", True)]
)
def test_a_different_word_is_not_a_misspelt_name(text: str, *, is_fuzzy: bool) -> None:
    """It is not called a fuzzy match, however many letters the name and the query share."""
    engine = hybrid_engine([skill("roll-back-deployment", "Returns to the version before")])
    [hit] = engine.search(Query(text=text, threshold=0.0)).hits
    assert hit.evidence.name > MIN_LIKENESS
    assert hit.reason.startswith("Fuzzy name match") == is_fuzzy


def test_a_reason_prefers_a_word_of_the_name_to_its_parts() -> None:
    """The word of the name is named although the description has words like its parts."""
    engine = hybrid_engine([skill("using-git-worktrees", "Isolates the work of working trees")])
    [hit] = engine.search(Query(text="worktree help", threshold=0.0)).hits
    assert hit.reason.endswith("keywords in name (worktrees)")


def test_a_reason_names_at_most_three_words() -> None:
    """They are the first three matched words of the query."""
    text = "which hour is it elsewhere by travel and by timezone or clock"
    assert first(text).reason == "Keywords in description (hour, elsewhere, travel)"


def test_a_query_is_quoted_without_its_own_quotation_marks() -> None:
    """The reason adds its own. Punctuation at the end is not quoted either."""
    for typed in ('"convert_ti"', "convert_ti!!!", '"convert_ti"?'):
        assert first(typed).reason == "Name begins with “convert_ti”"


def test_a_query_is_quoted_without_the_space_around_it() -> None:
    """This applies to misspelt names and to unfinished ones."""
    assert first(" convert_times ").reason == "Fuzzy name match (convert_times → convert_time)"
    assert first(" convert_ti ").reason == "Name begins with “convert_ti”"
    assert first(" convrt_tims ").reason.startswith("Fuzzy name match (convrt_tims → ")


def test_a_query_of_several_lines_is_quoted_on_one() -> None:
    """A reason must fit on one line of a table."""
    assert first("convert\n times").reason == "Fuzzy name match (convert times → convert_time)"
    assert first("convert\tti").reason == "Name begins with “convert ti”"


def test_an_item_that_hardly_matches_is_a_weak_match() -> None:
    """The reason says so, in the terms of the arm that found the item."""
    query = Query(text="a clockwork", threshold=0.0)
    other = tool("x__other", "Unlike it")
    hits = hybrid_engine([*ITEMS, other]).search(query).hits
    assert {hit.reason for hit in hits if hit.name == "other"} == {"Weak semantic similarity"}
    items = [skill("deploy", pin=("zorblax",)), skill("fly", deprecated_by="deploy")]
    reasons = [hit.reason for hit in keyword_engine(items).search(Query(text="zorblax")).hits]
    assert reasons == ["Pinned for “zorblax”; weak match"]


@pytest.mark.parametrize(
    ("description", "words"),
    [
        ("ターミナルを分割する", "ターミナルを分割"),
        ("分割したターミナル", "ターミナル, 分割"),
        ("git のターミナル", "ターミナル, git"),
        ("ターンを、を分割", "を分割, ター"),
    ],
)
def test_a_reason_names_words_without_spaces_whole(description: str, words: str) -> None:
    """The pairs of characters by which such words are found are not named."""
    [hit] = (
        keyword_engine([skill("tool", description)])
        .search(Query(text="ターミナルを分割 git", threshold=0))
        .hits
    )
    assert hit.reason == f"Keywords in description ({words})"


def test_a_reason_names_a_single_character_of_a_script_without_spaces() -> None:
    """The single character is named where it stands alone, otherwise the pair that contains it."""
    items = [skill("convert", "SVG を PNG"), skill("draw", "SVGを描く")]
    hits = keyword_engine(items).search(Query(text="SVGをPNG", threshold=0)).hits
    assert [hit.reason for hit in hits] == [
        "Keywords in description (svg, を, png)",
        "Keywords in description (svg, を → を描)",
    ]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("größeÄndern", "jetzt ändern", "ändern"),
        ("ЧтениеФайла", "адрес файла", "файла"),
        ("резюме", "Резюмё на сайт", "резюмё"),
        ("café-crème", "la crème fraîche", "crème"),
        ("file_reader", "reäder", "reäder"),
    ],
)
def test_a_reason_keeps_the_typed_accents(name: str, text: str, words: str) -> None:
    """Accents are kept in the reason although matching ignores them."""
    [hit] = keyword_engine([tool(f"s__{name}")]).search(Query(text=text, threshold=0)).hits
    assert hit.reason == f"Keywords in name ({words})"
