"""Search with both arms, and with one arm while the other is unavailable."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unicodedata import normalize

import pytest
from msgspec.structs import replace
from typing_extensions import override

from repertory.catalogue.item import Item, item_key
from repertory.catalogue.policy import Policy
from repertory.embedding.engine import EmbeddingEngine, Vectors
from repertory.embedding.models import MULTILINGUAL, Calibration
from repertory.errors import StoreError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Filter, Match, VectorAnswer, VectorQuery
from repertory.notices import OTHER_MODEL, UNKNOWN_WORDS
from repertory.search.answer import Answer, Mode
from repertory.search.engine import SearchEngine
from repertory.search.explain import explain
from repertory.search.query import Query
from repertory.search.semantic_arm import MAX_BY_MEANING, search_vectors
from repertory.search.steps import MAX_EMBEDDED
from repertory.values import Weights
from tests.support.builders import no_model, skill, tool
from tests.support.hybrid_search import Points, WordCounts, hybrid_engine
from tests.support.keyword_search import keyword_engine, reader

BREAD = skill(
    "bread",
    "Bakes bread of flour, water and salt",
    f"# Kneading\n{'Knead the dough until it is smooth. ' * 200}\n# Oven\nSteam makes a crust.\n",
)
ITEMS = [
    BREAD,
    skill("gardening", "Grows roses"),
    tool("files__read_file", "Read the contents of a file from disk"),
    tool("files__write_file", "Write text to a file on disk"),
    tool("mail__send_email", "Send a message to a recipient"),
]
TEXT = "bakes bread of flour"
GONE = "The store is gone."


class Recording(WordCounts):
    """An engine that records the texts of each call."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    @override
    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        self.calls.append([*texts])
        return super().embed_queries(texts)


class Failing(Points):
    """Points of a store that records its calls, and of which some methods fail."""

    failing: tuple[str, ...] = ()

    def __init__(self, items: Sequence[Item], engine: EmbeddingEngine) -> None:
        super().__init__(items, engine)
        self.calls: list[str] = []

    @override
    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        self._fail("query")
        return super().query(queries)

    @override
    def records(self, keys: Sequence[int]) -> Any:
        self._fail("records")
        return super().records(keys)

    def _fail(self, method: str) -> None:
        self.calls.append(method)
        if method in self.failing:
            raise StoreError(GONE)


def engine_of(*failing: str, **parts: Any) -> SearchEngine:  # noqa: ANN401 - of any type
    """A search engine on ``ITEMS`` whose store's ``failing`` methods fail; ``parts`` override."""
    counts = WordCounts()
    points = Failing(ITEMS, counts)
    points.failing = failing
    given: dict[str, Any] = {
        "keywords": KeywordIndex.empty().updated((), ITEMS),
        "collection": points,
        "embedding": lambda: counts,
        "reader": reader(),
    }
    return SearchEngine(**(given | parts))


def search(engine: SearchEngine, text: str = TEXT, **options: Any) -> Answer:  # noqa: ANN401
    """Search with threshold 0."""
    return engine.search(Query(text=text, **({"threshold": 0.0} | options)))


def names(answer: Answer) -> list[str]:
    """The names of the hits."""
    return [hit.name for hit in answer.hits]


def test_both_arms_answer() -> None:
    """The evidence contains the cosine and the ranks of both arms."""
    answer = search(engine_of())
    assert (answer.mode, answer.degraded) == (Mode.HYBRID, "")
    first = answer.hits[0].evidence
    assert answer.hits[0].name == "bread"
    assert first.cosine is not None
    assert 0.5 < first.cosine <= 1.0
    assert (first.semantic_rank, first.keyword_rank) == (1, 1)


def test_an_empty_catalogue_has_an_answer() -> None:
    """The answer has no hits and no closest item."""
    answer = search(hybrid_engine([]))
    assert (answer.mode, answer.hits, answer.best_below) == (Mode.HYBRID, [], 0.0)
    assert answer.closest == ""


def test_without_a_model_the_keyword_arm_answers() -> None:
    """The answer contains the error as the cause of the degradation."""
    answer = search(engine_of(embedding=no_model))
    assert (answer.mode, answer.degraded) == (Mode.KEYWORD, "There is no model.")
    assert names(answer)[0] == "bread"
    assert answer.hits[0].evidence.semantic_rank is None


def test_without_the_store_the_keyword_arm_answers() -> None:
    """Whole items cannot be read either, and the answer does without them."""
    answer = search(engine_of("query", "records"))
    assert (answer.mode, answer.degraded) == (Mode.KEYWORD, GONE)
    assert names(answer)[0] == "bread"


def test_the_keyword_arm_alone_finds_as_much_if_the_vectors_fail_during_a_search() -> None:
    """So it does if the model knows no word of the query."""
    items = [skill(f"zorb-{at}", f"Knead the grolk, type {at}") for at in range(2 * MAX_BY_MEANING)]
    points, keywords = Failing(items, WordCounts()), KeywordIndex.empty().updated((), items)
    alone = search(engine_of(collection=None, keywords=keywords), "zorb grolk", limit=100)
    assert len(alone.hits) >= MAX_BY_MEANING
    points.failing = ("query",)
    failed = search(engine_of(collection=points, keywords=keywords), "zorb grolk", limit=100)
    assert names(failed) == names(alone)


def test_a_store_that_fails_during_a_search_does_not_lose_the_hits() -> None:
    """If items cannot be read after the vector search, its hits stay and the answer says why."""
    answer = search(engine_of("records"))
    assert names(answer) == names(search(engine_of()))
    assert (answer.mode, answer.degraded) == (Mode.HYBRID, GONE)


@pytest.mark.parametrize("text", ["command palette", "and read every word of it"])
def test_an_answer_without_hits_says_that_items_could_not_be_read(text: str) -> None:
    """Their bodies may have the words near each other, or the query word for word."""
    body = "Open the command palette, and read every word of it."
    items = [skill("editor", "Writing programs", body), skill("garden", "Grows roses")]
    points, keywords = Failing(items, WordCounts()), KeywordIndex.empty().updated((), items)
    engine = engine_of(collection=points, keywords=keywords)
    points.failing = ("records",)
    answer = search(engine, text, threshold=0.5)
    assert (answer.hits, answer.degraded) == ([], GONE)
    assert explain(engine, Query(text=text), items[0].id).degraded == GONE


def test_a_closed_index_is_named() -> None:
    """Another thread may close it during a search."""
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    with pytest.raises(StoreError, match=r"^The index has been closed: open it again\.$"):
        search(engine_of(reader=closed))


def test_a_search_gets_its_model_once() -> None:
    """A second request could return another model that has replaced the first."""
    engines = iter([WordCounts()])
    answer = search(engine_of(embedding=lambda: next(engines)))
    assert (answer.mode, answer.degraded) == (Mode.HYBRID, "")


class Flooded(Failing):
    """Points whose nearest matches are all sections of one long document."""

    @override
    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        self._fail("query")
        first, *others = (item_key(item.id) for item in FLOODED)
        sections = [Match(key=first, section=at, score=0.9) for at in range(2 * MAX_BY_MEANING)]
        matches = sections + [Match(key=key, section=None, score=0.8) for key in others]
        return [VectorAnswer(matches=matches[: one.limit], scores={}) for one in queries]


FLOODED = [skill(f"item {at}", f"zorb{at}") for at in range(2 * MAX_BY_MEANING)]


def test_sections_of_a_few_long_documents_leave_room_for_other_items() -> None:
    """More points are requested until an arm has its maximum number of candidate items."""
    points = Flooded(FLOODED, WordCounts())
    keywords = KeywordIndex.empty().updated((), FLOODED)
    answer = search(engine_of(collection=points, keywords=keywords), "qqq", limit=100)
    assert len(answer.hits) == MAX_BY_MEANING


@pytest.mark.parametrize(
    "text", [TEXT, "read_file", "knead dough. Then mail it to a recipient.", "commit my changes"]
)
def test_a_search_calls_the_store_at_most_twice(text: str) -> None:
    """One call queries all vectors, also those of a task's steps; the other reads all items.

    Items for inferred hits are read in the same call. Tools need not be read.
    """
    runner = tool("box__run", "Runs it.", input_schema={"properties": {"command": {}}})
    points = Failing([*ITEMS, runner], WordCounts())
    keywords = KeywordIndex.empty().updated((), [*ITEMS, runner])
    engine = engine_of(collection=points, keywords=keywords)
    answer = search(engine, text, threshold=0.2)
    assert points.calls == (["query"] if text == "read_file" else ["query", "records"])
    is_inferred = answer.hits[-1].evidence.capability != ""
    assert is_inferred == (text == "commit my changes")


class Server(Failing):
    """Points that answer like a server, which returns the records of likely items with the matches.

    Attributes:
        broken: Whether these records are unreadable.
    """

    broken = False

    @override
    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        known = [super(Failing, self).records(one.likely) for one in queries]
        texts = [
            {item: "?" if self.broken else json.dumps(record) for item, record in one.items()}
            for one in known
        ]
        answers = zip(super().query(queries), texts, strict=True)
        return [replace(answer, records=records) for answer, records in answers]


@pytest.mark.parametrize("broken", [False, True])
def test_records_that_came_with_the_matches_are_not_read_again(*, broken: bool) -> None:
    """Only unreadable ones are read again, and only by the first search."""
    points = Server(ITEMS, WordCounts())
    points.broken = broken
    engine = engine_of(collection=points)
    answer = search(engine, limit=2)
    assert answer == search(engine_of(), limit=2)
    assert points.calls == (["query", "records"] if broken else ["query"])
    points.calls.clear()
    assert search(engine, limit=2) == answer
    assert points.calls == ["query"]


class Finding(Failing):
    """Points of which a search finds one item; every other item has the cosine 0.25."""

    found = ""

    @override
    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        self._fail("query")
        match = Match(key=item_key(self.found), section=None, score=0.9)
        keys = [{*one.keys}.difference([match.key]) for one in queries]
        return [VectorAnswer(matches=[match], scores=dict.fromkeys(one, 0.25)) for one in keys]


def test_the_successor_of_a_deprecated_hit_has_its_own_cosine() -> None:
    """Neither arm finds the successor; its cosine is queried together with the others."""
    items = [skill("old", "Kneads dough", deprecated_by="new"), skill("new", "Makes loaves")]
    points = Finding(items, WordCounts())
    points.found = items[0].id
    engine = engine_of(collection=points, keywords=KeywordIndex.empty().updated((), items))
    answer = search(engine, "zxqv")
    (new,) = (hit for hit in answer.hits if hit.name == "new")
    assert new.evidence.cosine == 0.25
    assert points.calls == ["query", "records"]


def test_missing_cosines_are_queried_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are left out if the store has become unavailable."""
    monkeypatch.setattr("repertory.search.semantic_arm.MIN_ITEMS", 1)
    points = Failing(ITEMS, WordCounts())
    (vector,) = WordCounts().embed_queries([TEXT])
    first, second = item_key(ITEMS[1].id), item_key(ITEMS[2].id)
    query = VectorQuery(vector=vector, limit=1, keys=[first])
    (nearest,) = search_vectors(points, [query], Calibration(), lambda keys: keys)
    assert {*nearest.cosines([first])} == {first}
    assert points.calls == ["query"]
    assert {*nearest.cosines([first, second])} == {first, second}
    points.failing = ("query",)
    assert {*nearest.cosines([first, second])} == {first}


def test_steps_are_embedded_in_one_batch_of_bounded_texts() -> None:
    """The batch has the beginnings of the task and of its steps; a query of one step is not cut."""
    embedding = Recording()
    engine = engine_of(embedding=lambda: embedding)
    long = " ".join(["bake the bread"] * 100)
    search(engine, f"{long}. Read the file.")
    (texts,) = embedding.calls
    assert [len(text) for text in texts] == [MAX_EMBEDDED, MAX_EMBEDDED, 14]
    search(engine, long)
    assert embedding.calls[1:] == [[long]]


@pytest.mark.parametrize(
    ("typed", "embedded"),
    [
        ("read the contnets of a file", "read the contents of a file"),
        ("sendEmail to a recipeint", "send email to a recipient"),
        ("recibient", "recipient"),
        ("a smoth crust", "a smoth crust"),  # too short
        ("kubernettes", "kubernettes"),  # no item has the word
        ("mentents, contentsy", "mentents, contentsy"),  # another beginning or ending
        ("the brandy", "the brandy"),  # a word of English
    ],
)
def test_misspelt_words_are_embedded_as_words_of_the_index(typed: str, embedded: str) -> None:
    """A model would take a misspelt word for another one: "conficts" for "config"."""
    embedding = Recording()
    search(engine_of(embedding=lambda: embedding), typed)
    assert embedding.calls == [[embedded]]


def test_a_word_that_may_stand_for_several_is_embedded_as_typed() -> None:
    """Forms of one word are one word."""
    texts = ("Plants and planets", "A printer, printers")
    engine = keyword_engine([tool(f"a__{number}", text) for number, text in enumerate(texts)])
    corrected = engine.keywords.corrected
    assert corrected("plantes") == "plantes"
    assert corrected("printeer, pritners") == "printer, printers"


def test_names_are_embedded_as_words() -> None:
    """``readFile`` is embedded as ``read file``, also inside the steps of a task."""
    embedding = Recording()
    search(engine_of(embedding=lambda: embedding), "readFile")
    search(engine_of(embedding=lambda: embedding), "readFile, then sendEmail to everybody")
    assert embedding.calls[0] == ["read file"]
    assert all("F" not in text for text in embedding.calls[1])


def test_each_step_has_its_own_nearest_items() -> None:
    """The evidence of a step's hit names only the words of that step."""
    answer = search(engine_of(), "bake bread of flour, then send a message to a recipient")
    assert {*names(answer)[:2]} == {"bread", "send_email"}
    typed = [{term.typed for term in hit.evidence.terms} for hit in answer.hits[:2]]
    assert {"recipient", "flour"} <= typed[0] | typed[1]
    assert not typed[0] & typed[1]


def test_the_calibration_of_the_model_is_used() -> None:
    """The same cosine gives a higher confidence with a steeper curve."""

    def confidence(calibration: Calibration | None) -> float:
        embedding = WordCounts()
        embedding.model = type(embedding.model)(
            id="x", slug="x", dimension=1, max_tokens=1, calibration=calibration
        )
        return (
            search(engine_of(embedding=lambda: embedding), "flour and other things")
            .hits[0]
            .confidence
        )

    low, high = Calibration(slope=1.0, bias=-2.0), Calibration(slope=9.0, bias=-2.0)
    assert confidence(low) < confidence(high)
    assert confidence(None) == confidence(Calibration())


def test_a_matching_section_is_named() -> None:
    """It is named by its heading, unless whole items cannot be read."""
    (hit,) = (one for one in search(engine_of(), "knead smooth dough").hits if one.name == "bread")
    assert hit.matched_in == "# Kneading"
    assert hit.reason.endswith(", in “Kneading”")
    answer = search(engine_of("records"), "knead smooth dough")
    (hit,) = (one for one in answer.hits if one.name == "bread")
    assert hit.matched_in == ""


def test_the_section_weight_is_a_share_of_the_cosine_of_a_section() -> None:
    """The cosine of a hit found by its section is proportional to the weight."""
    cosines = [
        hit.evidence.cosine
        for weight in (0.6, 0.9)
        for hit in search(
            engine_of(), "knead smooth dough", weights=Weights(section_weight=weight)
        ).hits
        if hit.name == "bread"
    ]
    assert cosines[0]
    assert cosines[1] == pytest.approx(1.5 * cosines[0], rel=1e-3)


def test_an_item_beyond_the_nearest_points_has_its_cosine() -> None:
    """An item that only the keyword arm found has a cosine but no semantic rank."""
    nearer = [skill(f"dough-{at}", "Flour") for at in range(MAX_BY_MEANING + 20)]
    far = skill("zorblax", "Grinds corn to fine flour with water and wind and patience")
    answer = search(hybrid_engine([*nearer, far]), "flour zorblax", limit=200)
    evidence = next(hit.evidence for hit in answer.hits if hit.name == "zorblax")
    assert evidence.semantic_rank is None
    assert 0.2 < (evidence.cosine or 0.0) < 0.9
    assert evidence.keyword_rank == 1


def test_every_hit_has_its_own_evidence() -> None:
    """The matched words belong to the right hit, whatever rows of the index matched."""
    texts = {1: "With zorblax", 8: "With quuxly"}
    items = [skill(f"item{at}", texts.get(at, "Other")) for at in range(10)]
    for engine in (keyword_engine(items), hybrid_engine(items)):
        hits = search(engine, "zorblax quuxly").hits[:2]
        found = {hit.name: [term.typed for term in hit.evidence.terms] for hit in hits}
        assert found == {"item1": ["zorblax"], "item8": ["quuxly"]}


def test_a_filter_applies_to_both_arms() -> None:
    """Neither arm returns an item that the filter excludes."""
    where = Filter(kinds=("skill",))
    assert {*names(search(engine_of(), "read the flour file", where=where))} <= {
        "bread",
        "gardening",
    }


def test_a_hit_exactly_at_the_threshold_is_shown() -> None:
    """The threshold is compared with the rounded confidence that answers show."""
    engine = engine_of()
    text = "read the contents of something else"
    everything = search(engine, text, threshold=0.0, limit=50)
    assert (everything.best_below, everything.closest) == (0.0, "")
    for least in {hit.confidence for hit in everything.hits}:
        answer = search(engine, text, threshold=least, limit=50)
        assert answer.hits == [hit for hit in everything.hits if hit.confidence >= least]
        below = everything.hits[len(answer.hits) :]
        closest = [(hit.confidence, hit.id) for hit in below] or [(0.0, "")]
        assert (answer.best_below, answer.closest) == closest[0]


def test_an_inferred_hit_exactly_at_the_threshold_is_shown() -> None:
    """This holds even if a policy changes its confidence to one with many digits."""
    policy = Policy(boost=-0.123)
    tools = [tool(f"sh{at}__run_command", f"Run command {at} in a shell") for at in range(3)]
    engine = keyword_engine([replace(one, policy=policy) for one in tools])
    text = "commit my changes to git"
    for hit in search(engine, text, threshold=0.0, limit=50).hits:
        assert hit.name in names(search(engine, text, threshold=hit.confidence, limit=50))


def test_an_answer_describes_the_searched_index() -> None:
    """It contains the number of items, the index's revision, and the stale sources."""
    answer = search(engine_of(version=7, stale=["mail"]), limit=1)
    assert (answer.items, answer.index_version, answer.stale_sources) == (5, 7, ("mail",))
    assert answer.total_results == len(answer.hits) == 1


def test_half_of_a_surrogate_pair_does_no_harm() -> None:
    """A shell may pass one in the text or in a filter; both are answered."""
    assert search(engine_of(), "bread \ud83c").query == "bread ?"
    assert search(engine_of(), where=Filter(sources=("\ud83c",))).hits == []


def test_items_are_read_by_id() -> None:
    """Unknown ids are left out; without a store, the error names the cause."""
    engine = engine_of()
    assert engine.items(["team/bread", "team/none"]) == {"team/bread": BREAD}
    with pytest.raises(StoreError, match="cannot be read now: Away"):
        engine_of(collection=None, degraded=["Away."]).items(["team/bread"])
    assert engine_of("records").available_items(["team/bread"]) == {}


class English(WordCounts):
    """An engine that knows no words with characters other than ASCII."""

    @override
    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        vectors = super().embed_queries(texts)
        vectors[[not text.isascii() for text in texts]] = 0.0
        return vectors


@pytest.mark.parametrize("text", ["хлеб", "рецепт хлеб", "жаркое из дичи"])
def test_a_query_of_words_unknown_to_the_model_is_answered_by_keywords(text: str) -> None:
    """The answer equals one without vectors; a notice explains it, and it is not degraded."""
    items = [*ITEMS, skill("печь", "Печет хлеб"), skill("ремонт", "Чинит велосипед")]
    embedding = English()
    engine = SearchEngine(
        keywords=KeywordIndex.empty().updated((), items),
        collection=Points(items, embedding),
        embedding=lambda: embedding,
        reader=reader(),
    )
    answer = engine.search(Query(text=text))
    by_words = keyword_engine(items).search(Query(text=text))
    assert [(hit.id, hit.confidence) for hit in answer.hits] == [
        (hit.id, hit.confidence) for hit in by_words.hits
    ]
    assert (answer.mode, answer.degraded) == (Mode.KEYWORD, "")
    assert answer.notices == (f"{UNKNOWN_WORDS}; {OTHER_MODEL}.",)
    assert explain(engine, Query(text=text), "team/bread").notices == answer.notices
    assert engine.search(Query(text="bread")).notices == ()
    embedding.model = MULTILINGUAL
    assert engine.search(Query(text=text)).notices == (f"{UNKNOWN_WORDS}.",)


def test_decomposed_accents_change_no_answer() -> None:
    """NFD text, as in file names of macOS, gives the same answer, including echo and reasons."""
    engine = hybrid_engine(
        [*ITEMS, skill("résumé-réunion", "Résumé d'une réunion"), tool("회의록")]
    )
    for text in ("résumé", "résumé réunion", "회의록", "compte-rendu d'une réunion"):
        apart = engine.search(Query(text=normalize("NFD", text)))
        assert apart == engine.search(Query(text=normalize("NFC", text)))
