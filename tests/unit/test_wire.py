"""Encoding and decoding answers as JSON."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.catalogue.item import Kind
from repertory.search.answer import Answer, Evidence, Hit, Mode, Term

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
    closest=TEXT,
)


@given(ANSWER)
def test_an_answer_is_decoded_unchanged(answer: Answer) -> None:
    """The JSON also contains the fields of contract 3, under the names of the contract."""
    sent = msgspec.json.encode(answer)
    data = msgspec.json.decode(sent)

    assert msgspec.json.decode(sent, type=Answer) == answer
    assert data["totalResults"] == len(data["results"]) == len(answer.hits)
    assert {"query", "threshold"} <= data.keys()
    for hit in data["results"]:
        assert list(hit)[:3] == ["toolId", "serverName", "toolName"]
        assert {"confidence", "reason", "description"} <= hit.keys()
        assert "id" not in hit


def test_unknown_fields_are_ignored() -> None:
    """Another release may send more fields."""
    data = msgspec.to_builtins(Answer(query="x", hits=[], threshold=0.0, mode=Mode.HYBRID))

    assert msgspec.convert({**data, "newField": {"a": 1}}, Answer).query == "x"


@pytest.mark.parametrize(
    "data", [{}, {"results": 7}, {"results": [{}]}, {"results": [], "mode": 1}]
)
def test_an_invalid_answer_is_refused(data: dict[str, object]) -> None:
    """Missing and invalid fields are errors and get no defaults."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(data, Answer)
