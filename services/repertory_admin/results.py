"""An answer as a table, and in detail."""

from typing import TYPE_CHECKING

from repertory_admin import terminal

if TYPE_CHECKING:
    from repertory.search.answer import Answer, Evidence, Hit


def show(answer: "Answer") -> None:
    """A table of the hits: what, how sure, why; and of which kind, where there are several."""
    kinds = {hit.kind for hit in answer.hits}
    first = "Tool" if kinds == {"tool"} else "Item"
    mixed = len(kinds) > 1
    terminal.show_table(
        (first, *(["Kind"] if mixed else []), "Confidence", "Reason"),
        [
            (hit.id, *([hit.kind] if mixed else []), f"{hit.confidence:.2f}", _reason(hit))
            for hit in answer.hits
        ],
        right=("Confidence",),
        styles={first: lambda _: "bold cyan", "Confidence": _colour, "Kind": lambda _: "dim"},
    )


def show_nothing(answer: "Answer") -> None:
    """Say that nothing was found, and what to try."""
    terminal.say("No tools found matching query")
    below = f": the best is {answer.best_below:.2f}" if answer.best_below else ""
    lower = f", or a --threshold lower than {answer.threshold:g}" if answer.threshold else ""
    terminal.say(f"Try other words{lower}{below}.")


def explain(answer: "Answer") -> None:
    """Show what each hit's confidence is made of."""
    for hit in answer.hits:
        terminal.say()
        terminal.say(terminal.safe(f"{hit.id}  {hit.confidence:.2f}"))
        for name, value in _details(hit.evidence):
            terminal.say(f"  {name:<10}  {terminal.safe(value)}")
    terminal.say()
    terminal.say(f"mode {answer.mode}, {answer.items:,} items, index {answer.index_version}")


def _details(evidence: "Evidence") -> list[tuple[str, str]]:
    details = []
    if evidence.semantic is not None:
        cosine = "" if evidence.cosine is None else f", cosine {evidence.cosine:.3f}"
        rank = _rank(evidence.semantic_rank)
        details.append(("semantic", f"{evidence.semantic:.2f}{cosine}{rank}"))
    if evidence.keyword is not None:
        details.append(("keyword", f"{evidence.keyword:.2f}{_rank(evidence.keyword_rank)}"))
    if evidence.name:
        details.append(("name", f"{evidence.name:.2f}"))
    if evidence.terms:
        terms = (
            term.typed if term.typed == term.matched else f"{term.typed} → {term.matched}"
            for term in evidence.terms
        )
        details.append(("terms", ", ".join(terms)))
    if evidence.section:
        details.append(("section", evidence.section))
    if evidence.capability:
        details.append(("capability", evidence.capability))
    return details


def _rank(rank: int | None) -> str:
    return "" if rank is None else f", rank {rank}"


def _reason(hit: "Hit") -> str:
    """The reason, with the section and what shadows the hit, where it does not say so itself."""
    reason = hit.reason
    heading = hit.matched_in.lstrip("# ")
    if heading and heading not in reason:
        reason += f", in “{heading}”"
    if hit.shadowed_by:
        reason += f" (shadowed by {hit.shadowed_by})"
    return reason


def _colour(confidence: str) -> str:
    return "green" if float(confidence) >= 0.6 else "yellow"
