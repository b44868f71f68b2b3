"""Both arms of a search, and each of them while the other is unavailable."""

import json
from collections.abc import Sequence
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
from repertory.search.candidates import MAX_BY_MEANING
from repertory.search.engine import SearchEngine
from repertory.search.explain import explain
from repertory.search.nearest import search_vectors
from repertory.search.query import Query
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
    """Keeps what was embedded: the texts of each call."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    @override
    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        self.calls.append([*texts])
        return super().embed_queries(texts)


class Failing(Points):
    """Points of a store of which some methods fail; it keeps the names of the calls."""

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
    """An engine on the items, of whose store some methods fail, with other parts if given."""
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
    """Search at a threshold that everything reaches."""
    return engine.search(Query(text=text, **({"threshold": 0.0} | options)))


def names(answer: Answer) -> list[str]:
    """The names of the hits."""
    return [hit.name for hit in answer.hits]


def test_both_arms_answer() -> None:
    """The evidence has the measured values of both."""
    answer = search(engine_of())
    assert (answer.mode, answer.degraded) == (Mode.HYBRID, "")
    first = answer.hits[0].evidence
    assert answer.hits[0].name == "bread"
    assert first.cosine is not None
    assert 0.5 < first.cosine <= 1.0
    assert (first.semantic_rank, first.keyword_rank) == (1, 1)


def test_an_empty_catalogue_has_an_answer() -> None:
    """Nothing is found."""
    answer = search(hybrid_engine([]))
    assert (answer.mode, answer.hits, answer.best_below) == (Mode.HYBRID, [], 0.0)
    assert answer.closest == ""


def test_without_a_model_the_words_answer() -> None:
    """The answer says why, in the words of the error."""
    answer = search(engine_of(embedding=no_model))
    assert (answer.mode, answer.degraded) == (Mode.KEYWORD, "There is no model.")
    assert names(answer)[0] == "bread"
    assert answer.hits[0].evidence.semantic_rank is None


def test_without_the_store_the_words_answer() -> None:
    """Whole items cannot be read either, and are not needed."""
    answer = search(engine_of("query", "records"))
    assert (answer.mode, answer.degraded) == (Mode.KEYWORD, GONE)
    assert names(answer)[0] == "bread"


def test_a_store_that_fails_during_a_search_leaves_what_it_has_found() -> None:
    """Nothing of an item's body is shown then, and the answer says why."""
    answer = search(engine_of("records"))
    assert names(answer) == names(search(engine_of()))
    assert (answer.mode, answer.degraded) == (Mode.HYBRID, GONE)


def test_a_model_is_asked_for_once_in_a_search() -> None:
    """Another one may take its place meanwhile."""
    engines = iter([WordCounts()])
    answer = search(engine_of(embedding=lambda: next(engines)))
    assert (answer.mode, answer.degraded) == (Mode.HYBRID, "")


class Flooded(Failing):
    """Points of which the nearest are all sections of one long document."""

    @override
    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        self._fail("query")
        first, *others = (item_key(item.id) for item in FLOODED)
        sections = [Match(key=first, section=at, score=0.9) for at in range(2 * MAX_BY_MEANING)]
        matches = sections + [Match(key=key, section=None, score=0.8) for key in others]
        return [VectorAnswer(matches=matches[: one.limit], scores={}) for one in queries]


FLOODED = [skill(f"item {at}", f"zorb{at}") for at in range(2 * MAX_BY_MEANING)]


def test_sections_of_a_few_long_documents_leave_room_for_other_items() -> None:
    """More points are asked for, of as many items as an arm has candidates."""
    points = Flooded(FLOODED, WordCounts())
    keywords = KeywordIndex.empty().updated((), FLOODED)
    answer = search(engine_of(collection=points, keywords=keywords), "qqq", limit=100)
    assert len(answer.hits) == MAX_BY_MEANING


@pytest.mark.parametrize(
    "text", [TEXT, "read_file", "knead dough. Then mail it to a recipient.", "commit my changes"]
)
def test_a_search_asks_the_store_twice_at_most(text: str) -> None:
    """Once for all vectors, also of the steps of a task, and once for all items that it reads.

    What is read for an inferred hit is among them. Of tools nothing is read.
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
    """Points that answer as a server does: records of likely items come along.

    Attributes:
        broken: Whether these cannot be read.
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
def test_records_that_came_along_are_not_read_again(*, broken: bool) -> None:
    """Unless they are unreadable; what was shown is not asked for again in any way."""
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
    """Points of which a search finds those of one item; the cosine of every other is 0.25."""

    found = ""

    @override
    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        self._fail("query")
        match = Match(key=item_key(self.found), section=None, score=0.9)
        keys = [{*one.keys}.difference([match.key]) for one in queries]
        return [VectorAnswer(matches=[match], scores=dict.fromkeys(one, 0.25)) for one in keys]


def test_the_successor_of_what_the_vectors_find_has_its_cosine() -> None:
    """Neither arm finds it; its cosine is asked for with all the others."""
    items = [skill("old", "Kneads dough", deprecated_by="new"), skill("new", "Makes loaves")]
    points = Finding(items, WordCounts())
    points.found = items[0].id
    engine = engine_of(collection=points, keywords=KeywordIndex.empty().updated((), items))
    answer = search(engine, "zxqv")
    (new,) = (hit for hit in answer.hits if hit.name == "new")
    assert new.evidence.cosine == 0.25
    assert points.calls == ["query", "records"]


def test_unexpected_cosines_are_asked_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are left out if the store is unavailable by then."""
    monkeypatch.setattr("repertory.search.nearest.MIN_ITEMS", 1)
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


def test_steps_are_embedded_at_once_by_their_beginnings() -> None:
    """A task's whole text and its steps are one batch of bounded texts; one need is not cut."""
    embedding = Recording()
    engine = engine_of(embedding=lambda: embedding)
    long = " ".join(["bake the bread"] * 100)
    search(engine, f"{long}. Read the file.")
    (texts,) = embedding.calls
    assert [len(text) for text in texts] == [MAX_EMBEDDED, MAX_EMBEDDED, 14]
    search(engine, long)
    assert embedding.calls[1:] == [[long]]


def test_names_are_embedded_as_words() -> None:
    """``readFile`` means the same as ``read file``."""
    embedding = Recording()
    search(engine_of(embedding=lambda: embedding), "readFile")
    search(engine_of(embedding=lambda: embedding), "readFile, then sendEmail to everybody")
    assert embedding.calls[0] == ["read file"]
    assert all("F" not in text for text in embedding.calls[1])


def test_each_step_has_its_own_nearest_items() -> None:
    """The hit of a step is explained by that step."""
    answer = search(engine_of(), "bake bread of flour, then send a message to a recipient")
    assert {*names(answer)[:2]} == {"bread", "send_email"}
    typed = [{term.typed for term in hit.evidence.terms} for hit in answer.hits[:2]]
    assert {"recipient", "flour"} <= typed[0] | typed[1]
    assert not typed[0] & typed[1]


def test_a_calibration_of_the_model_counts() -> None:
    """The same cosine tells more with a steeper curve."""

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


def test_a_section_that_matches_is_named() -> None:
    """By its heading; not if whole items cannot be read."""
    (hit,) = (one for one in search(engine_of(), "knead smooth dough").hits if one.name == "bread")
    assert hit.matched_in == "# Kneading"
    assert hit.reason.endswith(", in “Kneading”")
    answer = search(engine_of("records"), "knead smooth dough")
    (hit,) = (one for one in answer.hits if one.name == "bread")
    assert hit.matched_in == ""


def test_the_section_weight_is_a_share_of_the_cosine_of_a_section() -> None:
    """It decides although the item's own point is read too."""
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
    """The words found it; its meaning is asked for."""
    nearer = [skill(f"dough-{at}", "Flour") for at in range(MAX_BY_MEANING + 20)]
    far = skill("zorblax", "Grinds corn to fine flour with water and wind and patience")
    answer = search(hybrid_engine([*nearer, far]), "flour zorblax", limit=200)
    evidence = next(hit.evidence for hit in answer.hits if hit.name == "zorblax")
    assert evidence.semantic_rank is None
    assert 0.2 < (evidence.cosine or 0.0) < 0.9
    assert evidence.keyword_rank == 1


def test_every_hit_has_its_own_evidence() -> None:
    """Whatever rows of the index were found."""
    texts = {1: "With zorblax", 8: "With quuxly"}
    items = [skill(f"item{at}", texts.get(at, "Other")) for at in range(10)]
    for engine in (keyword_engine(items), hybrid_engine(items)):
        hits = search(engine, "zorblax quuxly").hits[:2]
        found = {hit.name: [term.typed for term in hit.evidence.terms] for hit in hits}
        assert found == {"item1": ["zorblax"], "item8": ["quuxly"]}


def test_a_filter_holds_in_both_arms() -> None:
    """Neither the words nor the vectors return another item."""
    where = Filter(kinds=("skill",))
    assert {*names(search(engine_of(), "read the flour file", where=where))} <= {
        "bread",
        "gardening",
    }


def test_a_hit_of_just_the_threshold_is_shown() -> None:
    """The threshold is the lowest confidence that is shown, as answers round it."""
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


def test_an_inferred_hit_of_just_the_threshold_is_shown() -> None:
    """Also if a policy gave it a confidence of many digits."""
    policy = Policy(boost=-0.123)
    tools = [tool(f"sh{at}__run_command", f"Run command {at} in a shell") for at in range(3)]
    engine = keyword_engine([replace(one, policy=policy) for one in tools])
    text = "commit my changes to git"
    for hit in search(engine, text, threshold=0.0, limit=50).hits:
        assert hit.name in names(search(engine, text, threshold=hit.confidence, limit=50))


def test_an_answer_says_what_it_was_searched_in() -> None:
    """The number of items, the revision of the index, and the sources that are stale."""
    answer = search(engine_of(version=7, stale=["mail"]), limit=1)
    assert (answer.items, answer.index_version, answer.stale_sources) == (5, 7, ("mail",))
    assert answer.total_results == len(answer.hits) == 1


def test_half_of_a_surrogate_pair_does_no_harm() -> None:
    """A shell may pass one, in the text or in a filter."""
    assert search(engine_of(), "bread \ud83c").query == "bread ?"
    assert search(engine_of(), where=Filter(sources=("\ud83c",))).hits == []


def test_items_are_read_by_id() -> None:
    """Unknown ids are left out; without a store, the error says why."""
    engine = engine_of()
    assert engine.items(["team/bread", "team/none"]) == {"team/bread": BREAD}
    with pytest.raises(StoreError, match="cannot be read now: Away"):
        engine_of(collection=None, degraded=["Away."]).items(["team/bread"])
    assert engine_of("records").available_items(["team/bread"]) == {}


class English(WordCounts):
    """Knows no words beyond ASCII."""

    @override
    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        vectors = super().embed_queries(texts)
        vectors[[not text.isascii() for text in texts]] = 0.0
        return vectors


@pytest.mark.parametrize("text", ["хлеб", "рецепт хлеб", "жаркое из дичи"])
def test_a_query_whose_words_the_model_does_not_know_is_answered_by_its_words(text: str) -> None:
    """As without vectors, and a notice says so; it is no failure."""
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


def test_accents_apart_from_their_letters_change_no_answer() -> None:
    """As macOS writes names: the echo of the query and the reasons are equal, too."""
    engine = hybrid_engine(
        [*ITEMS, skill("résumé-réunion", "Résumé d'une réunion"), tool("회의록")]
    )
    for text in ("résumé", "résumé réunion", "회의록", "compte-rendu d'une réunion"):
        apart = engine.search(Query(text=normalize("NFD", text)))
        assert apart == engine.search(Query(text=normalize("NFC", text)))
