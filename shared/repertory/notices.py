"""Notices shown with an answer, one plain sentence each."""

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from repertory.catalogue.item import Item
from repertory.settings import Settings
from repertory.sources.source import Problem, Severity
from repertory.text import ago, counted, cut, one_line
from repertory.watch_status import SourceState

NOTHING_TO_SEARCH = (
    "Nothing to search yet: no skill, tool or document is indexed; `repertory doctor` lists the "
    "sources and what was skipped."
)
ALL_FILTERED_OUT = (
    "No indexed item passes the filters of this search; leave out a kind, source, server or tag."
)
NO_ADVICE = (NOTHING_TO_SEARCH, ALL_FILTERED_OUT)  # other words would find nothing either
UNKNOWN_WORDS = (
    "The embedding model does not know the words of this query, so they were searched as they are, "
    "without their meaning"
)
OTHER_MODEL = "`--model multilingual` knows about fifty languages"
NOTHING_OFFERED = (
    "The configuration offers no items at all, so the previous index stays active; check that its "
    "folders exist."
)
INVALID_CONFIGURATION = "The configuration is invalid."
HAS_RIVAL = (
    "Another watch service publishes a different catalogue under the same name in Qdrant, so this "
    "one has stopped publishing; stop one of them and restart the other, or give each its own "
    "`REPERTORY_NAMESPACE`."
)

LATE = "The latest changes are not searchable yet; `repertory stats` says what they wait for."
SILENT = (
    "The watch service has not reported for a while, so the latest changes may be missing; "
    "`repertory stats` says why."
)
FAILED = (
    "Some items could not be indexed, so they are found as they were before, or not at all; "
    "`repertory queue list` names them."
)

SUDDENLY_EMPTY = (
    "It is suddenly empty; its items are kept. If it is meant to be empty, run `repertory rebuild`."
)

MAX_NAMED = 5  # names in one notice
MAX_NAME_LENGTH = 40  # characters of each
MAX_REASON_LENGTH = 200  # characters
MAX_WAITING = 3  # servers with what their user has to do


def about_unknown_words(slug: str) -> str:
    """A notice that a model, given by its slug, does not know the words of a query."""
    advice = "" if "multilingual" in slug else f"; {OTHER_MODEL}"
    return f"{UNKNOWN_WORDS}{advice}."


def about_steps(left_out: int, limit: int) -> str:
    """A notice that the limit leaves out the best items of some steps of a task."""
    steps = counted(left_out, "step")
    return (
        f"The limit {limit:,} leaves out the best items of {steps} of this task; a limit of "
        f"{limit + left_out:,} shows them."
    )


def about_configuration(error: str, sources: Iterable[SourceState]) -> tuple[str, ...]:
    """A notice that a configuration file cannot be used, unless a source says the same.

    Args:
        error: What is wrong with the file; empty if nothing is.
        sources: The sources.
    """
    if not error or any(one.error and one.error in error for one in sources):
        return ()
    reason = cut(one_line(error), MAX_REASON_LENGTH).rstrip(".")
    return (f"Some sources may be missing or outdated: {reason}.",)


def about_sources(sources: Sequence[SourceState]) -> tuple[str, ...]:
    """Notices about sources that are starting, unreadable, awaiting approval, or stale."""
    failed = [one for one in sources if one.is_failing]
    starting = [one.name for one in sources if one.is_starting]
    found = [f"Starting: {named(starting)}."] if starting else []
    if failed:
        # Agents pay for every notice of every answer, so only the first source has its reason.
        more = named(one.name for one in failed[1:])
        also = f" {more} could not be read either; `repertory stats` says why." if more else ""
        found.append(_about_failed(failed[0]) + also)
    if kept := [one.name for one in sources if one.stale and not (one.error or one.is_starting)]:
        found.append(
            f"Some items of {named(kept)} are kept as they were last read, since "
            "their files cannot be read now; `repertory doctor` names them."
        )
    if waiting := [one for one in sources if one.awaits_trust]:
        first, *others = dict.fromkeys(one_line(one.error) for one in waiting)  # each names a file
        names = named(one.name for one in waiting)
        kind = "MCP servers" if all(one.type == "mcp" for one in waiting) else "Sources"
        more = f" `repertory doctor` shows how to allow {len(others)} more." if others else ""
        found.append(f"{kind} await your trust: {names}. {first}{more}")
    found += [one_line(one.error) for one in sources if one.awaits_user][:MAX_WAITING]
    if withheld := sum(one.quarantined for one in sources):
        names = named(one.name for one in sources if one.quarantined)
        number = counted(withheld, "item is", "items are")
        found.append(f"{number} in quarantine ({names}); see `repertory trust review`.")
    return tuple(found)


def _about_failed(source: SourceState) -> str:
    reason = cut(one_line(source.error), MAX_REASON_LENGTH).rstrip(".")
    said = f"The source {named([source.name])} could not be read: {reason}."
    if source.error == SUDDENLY_EMPTY:
        return said
    kept = "Its items are kept." if source.stale else "This index has none of its items."
    return f"{said} {kept}"


def about_text(item: Item, problems: Iterable[Problem]) -> str:
    """Why an item's text is its last readable version; empty if its file can be read."""
    for problem in problems:
        # Relative paths might name other files.
        is_same_file = problem.path == item.path and PurePath(item.path).is_absolute()
        is_about = problem.item == item.id if problem.item else is_same_file
        if is_about and problem.severity is Severity.ERROR:
            reason = one_line(problem.message)
            return f"The file cannot be read now, so this is its last readable text: {reason}"
    return ""


def about_withheld(settings: Settings) -> tuple[str, ...]:
    """The settings of a discovered configuration that have no effect until it is trusted."""
    if not settings.withheld:
        return ()
    what = cut(one_line(", ".join(settings.withheld)), MAX_REASON_LENGTH)
    return (
        f"{settings.file} is not trusted, so these parts of it have no effect: {what}. Run "
        f"`{settings.to_trust}` to allow them.",
    )


def about_first_index(missing: int, total: int) -> str:
    """The number of items that are missing while the first index is being built."""
    return f"The first index is being built: {missing:,} of {total:,} items are missing."


def about_servers(
    sources: Iterable[SourceState], max_age_s: float, now: float, command: str = "repertory index"
) -> tuple[str, ...]:
    """MCP servers whose tools are unknown, and those whose tools were listed long ago.

    Args:
        sources: The sources.
        max_age_s: The age in seconds from which known tools are old.
        now: The time, in Unix seconds.
        command: The command that lists the tools.
    """
    servers = [one for one in sources if one.type == "mcp" and not one.error]
    found = []
    if unasked := [one.name for one in servers if not (one.seen or one.items)]:
        tools = f"The tools of {counted(len(unasked), 'MCP server')}"
        found.append(f"{tools} have not been listed yet: {named(unasked)}; run `{command}`.")
    if forgotten := [one.name for one in servers if one.items and not one.seen]:
        when = "were listed at an unknown time"
        found.append(f"The tools of {named(forgotten)} {when}; run `{command}`.")
    if old := [one for one in servers if one.seen and now - one.seen > max_age_s]:
        age = ago(now - min(one.seen for one in old))
        names = named(one.name for one in old)
        found.append(f"The tools of {names} were last listed {age}; run `{command}`.")
    return tuple(found)


def named(names: Iterable[str]) -> str:
    """Up to `MAX_NAMED` names, and how many more there are."""
    every = [_as_data(name) for name in names]
    shown = ", ".join(every[:MAX_NAMED])
    return f"{shown} and {len(every) - MAX_NAMED} more" if len(every) > MAX_NAMED else shown


def _as_data(name: str) -> str:
    """A name, cut, and quoted unless it is one word: a stranger may write a sentence for agents."""
    text = cut(one_line(name), MAX_NAME_LENGTH)
    return repr(text) if " " in text or "`" in text else text
