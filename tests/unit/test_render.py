"""An answer as JSON, and back."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.catalogue.item import Kind
from repertory.search.answer import Answer, Evidence, Hit, Mode, Term
from repertory.search.render import answer_of, as_json

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)  # what JSON can hold
NUMBER = st.floats(0, 1)
RANK = st.none() | st.integers(1, 100)
EVIDENCE = st.builds(
    Evidence,
    semantic=st.none() | NUMBER,
    keyword=st.none() | NUMBER,
    name=NUMBER,
    cosine=st.none() | st.floats(-1, 1),
    semantic_rank=RANK,
    keyword_rank=RANK,
    section=TEXT,
    terms=st.lists(st.builds(Term, typed=TEXT, matched=TEXT, field=TEXT), max_size=2).map(tuple),
    capability=TEXT,
    policy=st.lists(TEXT, max_size=2).map(tuple),
)
HIT = st.builds(
    Hit,
    **dict.fromkeys(("id", "name", "description", "source", "server", "path", "reason"), TEXT),
    kind=st.sampled_from(Kind),
    tags=st.lists(TEXT, max_size=2).map(tuple),
    confidence=NUMBER,
    matched_in=TEXT,
    shadowed_by=TEXT,
    evidence=EVIDENCE,
)
ANSWER = st.builds(
    Answer,
    query=TEXT,
    hits=st.lists(HIT, max_size=3),
    threshold=NUMBER,
    mode=st.sampled_from(Mode),
    degraded=TEXT,
    index_version=st.integers(0, 2**53),
    items=st.integers(0, 2**31),
    stale_sources=st.lists(TEXT, max_size=2).map(tuple),
    best_below=NUMBER,
)


@given(ANSWER)
def test_an_answer_comes_back_whole(answer: Answer) -> None:
    """What is sent as JSON is read as what it was."""
    sent = msgspec.json.encode(as_json(answer))

    assert answer_of(msgspec.json.decode(sent)) == answer


def test_what_is_not_known_is_passed_over() -> None:
    """Another release may say more."""
    data = as_json(Answer(query="x", hits=[], threshold=0.0, mode=Mode.HYBRID))

    assert answer_of({**data, "newField": {"a": 1}}).query == "x"


@pytest.mark.parametrize(
    "data", [{}, {"results": 7}, {"results": [{}]}, {"results": [], "mode": 1}]
)
def test_what_is_no_answer_is_refused(data: dict[str, object]) -> None:
    """Nothing is made up."""
    with pytest.raises(msgspec.ValidationError):
        answer_of(data)
