"""How a query is split into words, regardless of case and separators."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.index.keywords.query_words import identifier, is_distinct, plain, query_words
from repertory.search.query import Query
from tests.support.builders import skill, tool
from tests.support.hybrid_search import hybrid_engine
from tests.support.keyword_search import keyword_engine

PARTS = ["create", "issue", "note", "file", "url", "email", "address", "list", "search", "type"]
identifiers = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4)


@given(st.text(string.ascii_letters + string.digits + "-_. ", max_size=30))
def test_case_is_ignored(text: str) -> None:
    """``AnnData``, ``anndata`` and ``ANNDATA`` are split into the same words."""
    assert query_words(text) == query_words(text.lower()) == query_words(text.upper())
    assert plain(text) == plain(text.lower()) == plain(text.upper())


@given(identifiers)
def test_separators_and_camel_case_split_an_identifier_alike(parts: list[str]) -> None:
    """Without separators or capitals, an identifier is split at its common words."""
    camel = "".join(map(str.title, parts))
    expected = [word.term for word in query_words(" ".join(parts))]
    for text in ("_".join(parts), "-".join(parts), ".".join(parts), camel, camel.lower()):
        assert [word.term for word in query_words(text)] == expected, text
        assert plain(text) == " ".join(parts), text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UV_INDEX_URL", "uv_index_url"),
        (" `tool.uv.sources`", "tool.uv.sources"),
        ("--no-build-isolation", "--no-build-isolation"),
        ("docker-compose.yml", "docker-compose.yml"),
        ("_private_class_name", "_private_class_name"),
        ("--publish-url", "--publish-url"),
        ("UV_OFFLINE", "uv_offline"),
        ("-v", ""),
        ("end-to-end", ""),  # usual English
        ("api_key", "api_key"),
        ("processName", "processname"),
        ("RedisCredentialProvider", "rediscredentialprovider"),
        ("processname", ""),
        ("HubSpot", ""),  # a product
        ("iPhone", ""),
        ("Node.js", ""),
        ("what is UV_INDEX_URL", ""),
        ("a.b.c.", ""),
        ("`UV_OFFLINE`?", "uv_offline"),
        ("processName:", "processname"),
        ("get_logger()", "get_logger"),
        ("`get_logger()`?", "get_logger"),
        ("get_logger(name)", ""),
        ("$UV_OFFLINE", "uv_offline"),
        (".eslintrc.json", ".eslintrc.json"),
        (".env", ""),
        ("a/b_c_d", ""),
        ("", ""),
    ],
)
def test_an_identifier_of_several_parts_is_recognized(text: str, expected: str) -> None:
    """Its parts are joined by underscores, dots or capitals, or it is an option."""
    assert identifier(text) == expected


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("UV_OFFLINE", True),
        ("UV_OFFLINE?", True),
        ("`--publish-url`:", True),
        ("--publish-url", True),
        ("tool.uv.sources", True),
        ("api_key", False),
        ("package.json", False),
        ("processName", False),
    ],
)
def test_a_distinct_identifier_is_an_option_a_constant_or_long(text: str, *, is_so: bool) -> None:
    """Texts mention others without being about them."""
    assert identifier(text)
    assert is_distinct(text) == is_so


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUrl", ["url"]),
        ("useEffect", ["effect", "useeffect"]),  # the stop word distinguishes it from "effect"
        ("is it WHO", ["is", "it", "who"]),  # stop words alone may be acronyms
        ("objecttypeid", ["object", "type", "id"]),
        ("filename", ["filename"]),  # a common word itself
        ("deleteRoom", ["delete", "room"]),  # although few texts have the word "room"
        ("uninstallApp", ["uninstall", "app"]),
        ("sendgrid", ["sendgrid"]),  # a name that occurs in some texts
        ("java-script", ["java-script"]),
        ("ssh-key", ["ssh", "key"]),  # some texts write it as one word, but rarely
        ("deploy_k8s_cluster", ["deploy", "k8s", "cluster"]),
        ("zyx8quon", ["zyx", "quon", "zyx8quon"]),
        ("zyx-8quon", ["zyx", "quon", "8quon", "zyx-8quon"]),
        ("S3", ["s3"]),
        ("3.11", ["3.11"]),
        ("python v3.11.2", ["python", "3.11.2", "3.11"]),
        ("applause", ["applause"]),
        ("zorblax", ["zorblax"]),
        ("the-of", ["the-of"]),
        ("workspacee", ["workspacee"]),  # misspelt; "spacee" has the same stem as "space"
        ("errorrate", ["error", "rate"]),
        ("E501", ["e501"]),  # a code
        ("c-find", ["find", "c-find"]),  # the letter is no word, but distinguishes it from "find"
        ("the client's notes, they're", ["client", "notes"]),
        ("styles don't apply, tests won\u2019t run", ["styles", "apply", "tests", "run"]),
        ("it isnt saved", ["saved"]),
        ("the client\u2019s", ["client"]),
    ],
)
def test_words_of_an_identifier(text: str, expected: list[str]) -> None:
    """A common word stays whole; an unknown word with digits is a term, and so are its parts."""
    assert [word.text for word in query_words(text)] == expected


@pytest.mark.parametrize(
    "typed",
    ["intake", "labour", "beds", "comfortable", "towels", "door", "wegen", "uptime", "filebeat"],
)
def test_a_word_is_not_split_by_chance(typed: str) -> None:
    """A word that happens to consist of common words may be unrelated to them."""
    assert [word.text for word in query_words(typed)] == [typed]


@pytest.mark.parametrize("typed", ["membership", "friendships", "breakfast", "newsletter"])
def test_an_english_word_stays_whole(typed: str) -> None:
    """The embedded text keeps it whole too: a membership is not a ship of a member."""
    assert [word.text for word in query_words(typed)] == [typed]
    assert plain(f"Cancel my {typed}") == f"cancel my {typed}"


def test_the_likeliest_split_wins() -> None:
    """``sendsend`` is split into ``send send``, not ``sends end``."""
    assert [word.text for word in query_words("sendsend")] == ["send", "send"]


@pytest.mark.parametrize(
    "typed", ["comand", "comands", "invoce", "acount", "workspacee", "addminister"]
)
def test_a_misspelt_word_is_not_split(typed: str) -> None:
    """A common word in which a letter is missing or doubled is not split."""
    assert [word.text for word in query_words(typed)] == [typed]


def test_misspellings_with_the_stem_of_another_word_are_corrected() -> None:
    """``recipie`` has the stem of ``recipient``; plurals are corrected like singulars."""
    items = [skill("recipe-scaling", "Scales a dish"), skill("vegetable-stock", "Makes a stock")]
    engine = keyword_engine(items)
    for typed, name in {
        "recipie": "recipe-scaling",
        "recipies": "recipe-scaling",
        "vegtables": "vegetable-stock",
    }.items():
        assert [hit.name for hit in engine.search(Query(text=typed)).hits] == [name], typed


def test_codes_differ_from_their_digits_and_words() -> None:
    """An item with only the digits of a code, or only the word after its letter, is not certain."""
    items = [
        skill("lint-rule", "Explains E501"),
        skill("other-rule", "Explains W501"),
        skill("http-status", "Explains 501"),
        tool("a__find_strings", "Finds strings"),
        tool("a__query_studies", "Queries studies (C-FIND)"),
    ]
    engine = keyword_engine(items)
    assert [hit.name for hit in engine.search(Query(text="E501")).hits] == ["lint-rule"]
    assert not engine.search(Query(text="U501")).hits
    hits = engine.search(Query(text="C-FIND")).hits
    assert hits[0].name == "query_studies"
    assert all(hit.confidence < 0.6 for hit in hits[1:])


@pytest.mark.parametrize(
    ("typed", "name"),
    [("C#", "codeql"), ("M&A", "acquisitions"), ("I/O", "profiler"), ("C", "c-review")],
)
def test_signs_that_are_not_terms_distinguish_words(typed: str, name: str) -> None:
    """C# differs from C, and M&A from the M of MLflow."""
    items = [
        skill("c-review", "Reviews C"),
        skill("codeql", "Reads F#, C# and Java"),
        skill("acquisitions", "Plans (M&A) deals"),
        skill("mlflow", "Tracks MLflow runs"),
        skill("profiler", "Measures I/O"),
        skill("o-rings", "Seals"),
    ]
    hits = keyword_engine(items).search(Query(text=typed)).hits
    assert hits[0].name == name
    assert hits[0].confidence >= 0.6
    if typed != "C":
        assert all(hit.confidence < 0.6 for hit in hits[1:])


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        (".NET", ["dotnet-build", "csharp-review", "vb-migrate"]),
        ("dotnet", ["dotnet-build", "csharp-review", "vb-migrate"]),
        ("review .net code", ["csharp-review"]),
        ("net", ["net-worth", "domains"]),
        ("asp.net", ["web-api"]),
        ("VB.NET", ["vb-migrate"]),
        ("vb.net", ["vb-migrate"]),
        ("node.js", ["debug-node"]),
        ("nodejs", ["debug-node"]),
    ],
)
def test_dotnet_differs_from_net(typed: str, names: list[str]) -> None:
    """``.NET`` is the same word as its command ``dotnet``, and not the word ``net``."""
    items = [
        skill("dotnet-build", "Builds projects"),
        skill("csharp-review", "Reviews C# and .NET code"),
        skill("web-api", "Writes ASP.NET services"),
        skill("vb-migrate", "Migrates VB.NET programs"),
        skill("net-worth", "Computes what a person has"),
        skill("domains", "Checks addresses such as example.net"),
        skill("debug-node", "Debugs Node.js"),
    ]
    hits = keyword_engine(items).search(Query(text=typed)).hits
    sure = [hit.name for hit in hits if hit.confidence >= 0.65]
    assert sure[: len(names)] == names
    assert "net-worth" not in sure or typed == "net"


@pytest.mark.parametrize(("one", "several"), [("GPU", "GPUs"), ("NDA", "NDAs"), ("PDF", "PDFs")])
def test_an_acronym_and_its_plural_are_one_word(one: str, several: str) -> None:
    """Each form finds an item that has only the other, although such plurals are not stemmed."""
    for indexed, typed in ((one, several), (several, one)):
        engine = keyword_engine([skill("thing", f"About {indexed}"), skill("other", "Else")])
        assert [hit.name for hit in engine.search(Query(text=typed)).hits] == ["thing"], typed


@pytest.mark.parametrize("typed", ["CVE", "CVEs", "SLO", "SLOs"])
def test_an_acronym_is_found_with_its_plural(typed: str) -> None:
    """Both items are found, however common each form is."""
    one = typed.removesuffix("s")
    engine = keyword_engine([skill(f"{one}-guide", "Guides"), skill("b", "", body=f"{one}s")])
    assert {hit.name for hit in engine.search(Query(text=typed)).hits} == {f"{one}-guide", "b"}


@pytest.mark.parametrize("typed", ["DNS", "TLS", "HTTPS", "news"])
def test_a_word_that_ends_in_s_need_not_be_a_plural(typed: str) -> None:
    """Only the item with the word itself is found, not one with the word without its ``s``."""
    engine = keyword_engine([skill("a", f"About {typed[:-1]}"), skill("b", f"About {typed}")])
    assert [hit.name for hit in engine.search(Query(text=typed)).hits] == ["b"]


SYMPY = skill("sympy", "Solves integrals and equations")
INTEGRATIONS = [skill(f"vendor{n}-integration", "Connects a vendor") for n in range(70)]


@pytest.mark.parametrize("typed", ["integral", "integrals", "INTEGRALS"])
def test_the_typed_word_ranks_above_words_with_the_same_stem(typed: str) -> None:
    """``integrals`` and ``integrations`` have the same stem but different meanings."""
    hits = keyword_engine([SYMPY, *INTEGRATIONS]).search(Query(text=typed)).hits
    assert hits[0].name == "sympy"
    assert len(hits) > 1


def test_a_word_and_its_plural_get_nearly_equal_answers() -> None:
    """Both find the same items in the same order, with nearly the same confidences."""
    engine = keyword_engine([tool("a__list_issues"), skill("b", "Triages an issue")])
    one, several = (engine.search(Query(text=typed)).hits for typed in ("issue", "issues"))
    assert [hit.id for hit in one] == [hit.id for hit in several]
    confidences = [hit.confidence for hit in (*one, *several)]
    assert confidences[:2] == pytest.approx(confidences[2:], abs=0.06)


def test_many_items_with_another_form_do_not_hide_the_typed_form() -> None:
    """The item with ``modified`` leads thirty items with ``modify``."""
    others = [skill(f"edit-{number}", f"Modify thing {number}") for number in range(30)]
    engine = keyword_engine([*others, skill("dates", "When a page was last modified by hand")])
    assert engine.search(Query(text="modified", limit=5)).hits[0].name == "dates"
    assert len(engine.search(Query(text="modified", limit=40)).hits) == 31


@pytest.mark.parametrize(
    ("one", "several"),
    [("tax", "taxes"), ("dish", "dishes"), ("branch", "branches"), ("box", "boxes")],
)
def test_plurals_in_es_match_like_the_singular(one: str, several: str) -> None:
    """Singular and plural find the same items with nearly the same confidences."""
    engine = keyword_engine([skill("thing", f"About a {one}"), skill(f"{one}-list", "Lists them")])
    found = [engine.search(Query(text=typed)).hits for typed in (one, several)]
    singular, plural = ({hit.name: hit.confidence for hit in hits} for hits in found)
    assert plural == pytest.approx(singular, abs=0.06)


def test_a_whole_identifier_in_a_description_is_found_first() -> None:
    """Its item leads items that have one of its words in their names."""
    items = [
        skill("sdk", "Replaces generateObject"),
        skill("generate-image"),
        skill("object-store"),
    ]
    for typed in ("generateObject", "generateobject", "generate-object"):
        assert keyword_engine(items).search(Query(text=typed)).hits[0].name == "sdk"


@pytest.mark.parametrize(
    ("typed", "name"),
    [("color", "colour-grading"), ("neighbours", "neighbor-list"), ("catalogue", "catalog-of-art")],
)
def test_british_and_american_spellings_match(typed: str, name: str) -> None:
    """A word typed in one spelling finds an item with the other."""
    [hit] = keyword_engine([skill(name), skill("other")]).search(Query(text=typed)).hits
    assert hit.name == name


@pytest.mark.parametrize("typed", ["the netcode", "my netcode", "netcode"])
def test_stop_words_around_a_single_word_change_nothing(typed: str) -> None:
    """``netcode`` is looked up as a whole, and not only by its parts ``net`` and ``code``."""
    engine = keyword_engine([skill("netcode-debugging"), skill("code-of-the-net")])
    hits = engine.search(Query(text=typed)).hits
    assert hits[0].name == "netcode-debugging"
    assert hits[0].confidence >= 0.8


def test_an_english_word_is_not_corrected() -> None:
    """``cream`` alone is not taken for a misspelt ``create``; ``craete`` is."""
    engine = keyword_engine([tool("a__create_note", "Creates a note")])
    assert not engine.search(Query(text="cream")).hits
    assert engine.search(Query(text="cream a note")).hits
    assert engine.search(Query(text="craete")).hits


def test_a_misspelt_word_is_corrected_beside_a_correct_one() -> None:
    """The correct word must not keep the misspelt one from finding its item."""
    items = [
        skill("home", "Opens the garage door, and sets the thermostat of the hall"),
        skill("other", "Washes a car"),
    ]
    engine = keyword_engine(items)
    for typed in ("garge", "garge door", "door garge", "thermstat hall", "hall thermostt"):
        assert [hit.name for hit in engine.search(Query(text=typed)).hits] == ["home"], typed


def test_a_verb_with_a_particle_finds_the_noun() -> None:
    """``back up`` also finds an item with ``backup``."""
    engine = keyword_engine([tool("a__start_backup"), tool("a__step_back", "Goes back")])
    names = [hit.name for hit in engine.search(Query(text="back up", threshold=0)).hits]
    assert "start_backup" in names


@pytest.mark.parametrize("typed", ["WHO", "who", "IT"])
def test_an_acronym_that_is_a_stop_word_is_found(typed: str) -> None:
    """A text that has it in capitals is found, whether or not the query has capitals."""
    items = [
        skill("reports", "Reads WHO situation reports"),
        skill("helpdesk", "Handles IT tickets"),
        skill("other", "Tells who did it"),
    ]
    [hit] = keyword_engine(items).search(Query(text=typed)).hits
    assert hit.name == {"who": "reports", "it": "helpdesk"}[typed.lower()]


@pytest.mark.parametrize("typed", ['"rotate keys"', "'rotate keys'", " \u201crotate keys\u201d "])
def test_quotation_marks_around_a_query_are_ignored(typed: str) -> None:
    """The embedded text does not contain them."""
    assert plain(typed) == "rotate keys"


@pytest.mark.parametrize("limit", [5, 50, 200])
def test_a_single_word_finds_up_to_limit_items(limit: int) -> None:
    """Of 300 items with the word, exactly ``limit`` are found."""
    items = [skill(f"s{number}", "About it", f"Text {number} of quixtral") for number in range(300)]
    assert len(keyword_engine(items).search(Query(text="quixtral", limit=limit)).hits) == limit


@pytest.mark.parametrize("typed", ["payroll", "zorblax", "heap dump", "run-payroll", "run payrol"])
@pytest.mark.parametrize(
    "request_for",
    ["Hi, {}", "{}, thanks!", "Is there a tool for {}", "a skill for {}", "Hello! {}. Thank you"],
)
def test_phrases_of_a_request_change_nothing(typed: str, request_for: str) -> None:
    """Items and confidences are the same: a greeting does not count as a rare word."""
    items = [
        skill("run-payroll", "Pays salaries"),
        skill("restart", "Restarts what hangs, with a heap dump", body="Reads the zorblax."),
        skill("tool-guide", "Explains each tool and skill, and says hi"),
    ]
    engine = keyword_engine(items)
    found, expected = (
        [(hit.name, hit.confidence) for hit in engine.search(Query(text=text)).hits]
        for text in (request_for.format(typed), typed)
    )
    assert found == expected
    assert found


@pytest.mark.parametrize("typed", ["how do I {}", "please {}", "I need the {}", "the {} please"])
def test_a_single_word_may_be_part_of_a_request(typed: str) -> None:
    """It is found in a body, without its hyphens, and misspelt, as if it were typed alone."""
    items = [
        skill("put-away-pallet", "Stores it", body="Has a zorblax."),
        skill("accessibility", "Audits pages"),
    ]
    engine = keyword_engine(items)
    for word, name, least in [
        ("zorblax", "put-away-pallet", 0.41),
        ("putaway", "put-away-pallet", 0.9),
        ("accessibilty", "accessibility", 0.97),
    ]:
        [hit] = engine.search(Query(text=typed.format(word))).hits
        assert hit.name == name
        assert hit.confidence > least, word


def test_naming_the_wanted_kind_removes_no_word() -> None:
    """An item that has ``skill`` or ``agent`` as a word of its own comes first."""
    items = [
        skill("run-payroll", "Pays salaries"),
        skill("payroll-skill", "Explains skills"),
        skill("agent-skills", "Writes skills for agents"),
        skill("agent-council", "Has agents debate"),
        skill("receive-goods", "Books a zorblax"),
    ]
    engine = hybrid_engine(items)
    names = [hit.name for hit in engine.search(Query(text="payroll skill")).hits]
    assert names[:2] == ["payroll-skill", "run-payroll"]
    assert engine.search(Query(text="agent skill")).hits[0].name == "agent-skills"
    for typed in ("zorblax", "zorblax skill", "zorblax tool"):
        hit = engine.search(Query(text=typed)).hits[0]
        assert hit.name == "receive-goods"
        assert hit.confidence > 0.6, typed


def test_a_name_may_begin_like_a_request() -> None:
    """``tool for payroll`` finds the item of that name with high confidence."""
    items = [skill("tool-for-payroll", "Pays"), skill("payroll", "Pays"), skill("hi", "Greets")]
    engine = keyword_engine(items)
    for typed in ("tool for payroll", "payroll", "hi"):
        hit = engine.search(Query(text=typed)).hits[0]
        assert hit.name.replace("-", " ") == typed
        assert hit.confidence >= 0.98
