"""Shows answers and explanations."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from repertory.formats import phrases
from repertory.formats.linked import link_facts
from repertory.notices import NO_ADVICE
from repertory.search.answer import Answer, Hit, Term, rounded_down
from repertory.search.explanation import Explanation, Word
from repertory.search.query import Query
from repertory.text import counted
from repertory_admin import terminal
from repertory_admin.text import safe

if TYPE_CHECKING:
    from rich.console import Console


def show(answer: Answer) -> None:
    """Show the hits: a few lines each in a terminal, a line each in a pipe."""
    if terminal.is_terminal():
        from repertory_admin import drawing  # noqa: PLC0415 - rich takes a tenth of a second

        draw(answer.hits, drawing.console())
    else:
        _show_lines(answer)


def draw(hits: Iterable[Hit], to: "Console") -> None:
    """Draw hits: id, kind and confidence; below them the description, the reason and the file."""
    from repertory_admin import drawing  # noqa: PLC0415 - as above

    for hit in hits:
        confidence = f"{hit.confidence:.2f}"
        colour = _colour(confidence)
        drawing.words(to, (hit.id, "bold cyan"), (hit.kind, "dim"), (confidence, colour))
        drawing.one_line(to, hit.description, "dim")
        drawing.paragraph(to, phrases.reason(hit))
        drawing.file(to, hit.path, "dim")


def _show_lines(answer: Answer) -> None:
    """Show a table with a line for each hit, and the kinds if there are several."""
    kinds = {hit.kind for hit in answer.hits}
    first = "Tool" if kinds == {"tool"} else "Item"
    mixed = len(kinds) > 1
    terminal.show_table(
        (first, *(["Kind"] if mixed else []), "Confidence", "Reason"),
        [
            (hit.id, *([hit.kind] if mixed else []), f"{hit.confidence:.2f}", phrases.reason(hit))
            for hit in answer.hits
        ],
        right=("Confidence",),
    )


def warn_if_degraded(answer: Answer | Explanation) -> None:
    """Warn if an arm did not answer, and say why."""
    if answer.degraded:
        terminal.warn(f"degraded, answered by {answer.mode} alone: {answer.degraded}")


def show_notices(answer: Answer | Explanation) -> None:
    """Show the notices of an answer on stderr."""
    for notice in answer.notices:
        if notice not in NO_ADVICE:
            terminal.note(notice)


def show_nothing(answer: Answer, query: Query) -> None:
    """Show that nothing was found, and suggest another search."""
    if said := [one for one in answer.notices if one in NO_ADVICE]:
        terminal.say(said[0])
        return
    kinds = query.where.kinds or ("tool",)
    terminal.say(f"No {' or '.join(f'{kind}s' for kind in kinds)} found matching query")
    closest, confidence = safe(answer.closest), f"{rounded_down(answer.best_below):.2f}"
    below = f": the closest is {closest} with {confidence}" if closest else ""
    lower = f", or a --threshold lower than {answer.threshold:g}" if answer.threshold else ""
    terminal.say(f"Try other words{lower}{below}.")


def show_evidence(answer: Answer, query: Query) -> None:
    """Show the probability of each hit, and the evidence behind it."""
    for hit in answer.hits:
        terminal.say()
        terminal.say(safe(f"{hit.id}  {hit.confidence:.2f}"))
        terminal.show_facts(_evidence(hit), indent=2)
    terminal.say()
    terminal.show_text(f"{_search(query, answer.mode, answer.items)}, index {answer.index_version}")


def show_explanation(explanation: Explanation) -> None:
    """Show why a search returns an item, or why not."""
    hit = explanation.hit
    terminal.say(safe(f"{hit.id}  {hit.confidence:.2f}"))
    terminal.show_text(explanation.verdict)
    terminal.say()
    facts = {"reason": phrases.reason(hit), **_evidence(hit), **link_facts(explanation.links)}
    terminal.show_facts(facts)
    if explanation.words:
        terminal.say()
        terminal.show_table(
            ("Word", "Share", "In the item"),
            [(word.typed, f"{word.share:.0%}", _place(word)) for word in explanation.words],
            right=("Share",),
        )
    if explanation.better:
        terminal.say()
        terminal.show_table(
            ("Better", "Confidence"),
            [(other.id, f"{other.confidence:.2f}") for other in explanation.better],
            right=("Confidence",),
        )
    terminal.say()
    terminal.show_text(_search(explanation.query, explanation.mode, explanation.items))


def _evidence(hit: Hit) -> dict[str, str]:
    """The probability, the evidence behind it, and the tags."""
    evidence = hit.evidence
    return {
        "probability": f"{evidence.probability:.2f}",
        "semantic": _arm(evidence.semantic, evidence.semantic_rank, evidence.cosine),
        "keyword": _arm(evidence.keyword, evidence.keyword_rank),
        "name": f"{evidence.name:.2f}" if evidence.name else "",
        "terms": ", ".join(map(_term, evidence.terms)),
        "section": hit.matched_in,
        "capability": evidence.capability,
        "tags": ", ".join(hit.tags),
        "policy": "; ".join(evidence.policy),
        "the same": ", ".join(hit.duplicates),
    }


def _arm(value: float | None, rank: int | None, cosine: float | None = None) -> str:
    if value is None:
        return ""
    raw = "" if cosine is None else f", cosine {cosine:.3f}"
    return f"{value:.2f}, " + (f"rank {rank}" if rank else "not among its best") + raw


def _term(term: Term) -> str:
    written = term.typed if term.typed == term.matched else f"{term.typed} → {term.matched}"
    return f"{written} ({term.field})" if term.field else written


def _place(word: Word) -> str:
    """The fields of the item that have a query word, or else the nearest word in the item."""
    if not word.matched:
        return f"no; nearest is {word.near}" if word.near else "no"
    where = ", ".join(word.fields) or "yes"
    return where if word.matched == word.typed else f"{where}: {word.matched}"


def _search(query: Query, mode: str, items: int) -> str:
    """The parameters of a search."""
    where, weights = query.where, asdict(query.weights)
    filters = (
        ("kind", where.kinds),
        ("source", where.sources),
        ("server", where.servers),
        ("tag", where.tags),
    )
    parts = [
        f"mode {mode}, {counted(items, 'item')}",
        f"limit {query.limit}, threshold {query.threshold:g}",
        *(f"{name} {weight:g}" for name, weight in weights.items()),
        *(f"only {name} {' or '.join(values)}" for name, values in filters if values),
    ]
    return ", ".join(parts)


def _colour(confidence: str) -> str:
    return "green" if float(confidence) >= 0.6 else "yellow"
