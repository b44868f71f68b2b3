"""The report: what the recorded usage says about a catalogue, and what to do about it."""

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from repertory.catalogue.item import Kind
from repertory.catalogue.likeness import likenesses
from repertory.index.keywords.document import Entry
from repertory.search.inference import DEFAULT_THRESHOLD
from repertory.text import ago
from repertory.usage import similar_items
from repertory.usage.clusters import Cluster, clusters
from repertory.usage.events import Event, LostEvents, Use
from repertory.usage.outcomes import USED_WITHIN_S, Outcome, outcomes
from repertory.usage.wire import Insights, ItemFinding, SearchFinding, StaleSource
from repertory.watch_status import SourceState

MAX_LISTED = 50  # per list
MAX_QUERIES = 5  # per cluster
MAX_ITEMS = 3  # per cluster or group
MAX_PHRASE_TERMS = 4  # in a query that is proposed as a pin or an alias
MIN_FOLLOWED = 2  # searches that were followed by an item, from which on it is proposed
MIN_GROUP = 3  # items of a server or source, from which on they are reported together
SLOW_MS = 500.0
OFTEN = 3  # searches that found an item, from which on it is reported as never used
STALE_S = 7 * 86_400.0  # age of the last scan from which on a source is reported
_ORDER = {Kind.SKILL: 0, Kind.TOOL: 1, Kind.DOCUMENT: 2}


def report(
    events: Sequence[Event],
    entries: Sequence[Entry],
    sources: Sequence[SourceState],
    *,
    recording: str,
    now: float,
) -> Insights:
    """The report on the given usage.

    Args:
        events: The recorded events.
        entries: The items of the catalogue.
        sources: Its sources, in the order of their precedence.
        recording: The setting ``insights.record``; queries are shown only for ``plain``.
        now: The time, in Unix seconds.
    """
    searches = outcomes(events)
    known = {entry.id for entry in entries}
    used = {event.item for event in events if isinstance(event, Use)}
    empty = [one for one in searches if not one.search.hits and not one.search.is_degraded]
    unused = [
        one
        for one in searches
        if one.search.hits and not one.used and now - one.search.at > USED_WITHIN_S
    ]
    slow_searches = [one for one in searches if one.search.ms >= SLOW_MS]
    found = Counter(item for one in searches for item in one.search.named)
    answers = {
        one.search.digest: one.search.hits
        for one in searches
        if one.search.hits and one.search.confidence >= DEFAULT_THRESHOLD
    }
    unanswered, ignored = clusters(empty), clusters(unused)
    slow = sorted(clusters(slow_searches), key=_slowest_ms, reverse=True)
    never_found = list(_never_found(entries, found, len(searches))) if searches else []
    never_used = list(_never_used(entries, found, used))
    alike = list(_alike(entries, found))
    shadowed = list(_shadowed(entries, sources, found))
    stale = list(_stale(sources, now))
    has_queries = recording == "plain"
    durations = sorted(one.search.ms for one in searches)
    return Insights(
        since=min((event.at for event in events), default=0.0),
        searches=len(searches),
        callers=len({one.search.caller for one in searches}),
        without_results=len(empty),
        without_use=len(unused),
        uses=sum(isinstance(event, Use) for event in events),
        lost=sum(event.count for event in events if isinstance(event, LostEvents)),
        recording=recording,
        median_ms=_quantile(durations, 0.5),
        slow_ms=_quantile(durations, 0.95),
        unanswered=_shown(
            unanswered, lambda one: _unanswered(one, known, answers), has_queries=has_queries
        ),
        unused=_shown(ignored, lambda one: _unused(one, known), has_queries=has_queries),
        never_found=never_found[:MAX_LISTED],
        never_used=never_used[:MAX_LISTED],
        alike=alike[:MAX_LISTED],
        shadowed=shadowed[:MAX_LISTED],
        stale=stale[:MAX_LISTED],
        slow=_shown(slow, _slow, has_queries=has_queries),
        totals={
            "unanswered": len(unanswered),
            "unused": len(ignored),
            "neverFound": len(never_found),
            "neverUsed": len(never_used),
            "alike": len(alike),
            "shadowed": len(shadowed),
            "stale": len(stale),
            "slow": len(slow),
        },
    )


def _shown(
    found: Sequence[Cluster], advice: Callable[[Cluster], SearchFinding], *, has_queries: bool
) -> list[SearchFinding]:
    """The advice about the first clusters, without queries if they must not be shown."""
    shown = map(advice, found[:MAX_LISTED])
    return [one if has_queries else replace(one, queries=[]) for one in shown]


def _slowest_ms(cluster: Cluster) -> float:
    return max(one.search.ms for one in cluster.outcomes)


def _searches(cluster: Cluster, items: list[str], advice: str, field: str = "") -> SearchFinding:
    all_ = [one.search for one in cluster.outcomes]
    return SearchFinding(
        queries=cluster.queries[:MAX_QUERIES],
        digest=cluster.groups[0][0].search.digest,
        searches=len(all_),
        callers=len({one.caller for one in all_}),
        last=max(one.at for one in all_),
        confidence=max(one.confidence for one in all_),
        ms=max(one.ms for one in all_),
        items=items,
        advice=advice,
        field=field,
    )


def followed(searches: Iterable[Outcome], known: set[str]) -> list[str]:
    """The known items that callers used soon after searches, most frequent first."""
    counts = Counter(item for one in searches for item in one.followed if item in known)
    return sorted(counts, key=lambda item: (-counts[item], item))


def _unanswered(
    cluster: Cluster, known: set[str], answers: Mapping[str, Sequence[str]]
) -> SearchFinding:
    """Advice about searches without results, given the hits of other searches by digest."""
    if after := followed(cluster.outcomes, known)[:MAX_ITEMS]:
        return _followed(
            cluster,
            after,
            f"Add an alias: callers used {after[0]} soon afterwards. Give it these words in "
            "`aliases`, or in its description.",
            "aliases",
        )
    digests = dict.fromkeys(one.search.digest for one in cluster.outcomes)
    hits = dict.fromkeys(hit for one in digests for hit in answers.get(one, ()) if hit in known)
    if hits:
        return _searches(
            cluster,
            [*hits][:MAX_ITEMS],
            f"The same query found {next(iter(hits))} with other filters, with the usual threshold "
            "or at another time.",
        )
    return _searches(cluster, [], "Write a skill or add a source for this, if callers need it.")


def _followed(cluster: Cluster, after: list[str], advice: str, field: str) -> SearchFinding:
    """Advice about items that callers used instead. Long queries make no good pins or aliases.

    Nor does a single use, because the item may have nothing to do with the search.
    """
    if sum(after[0] in one.followed for one in cluster.outcomes) < MIN_FOLLOWED:
        return _searches(
            cluster,
            after,
            f"A caller used {after[0]} soon afterwards. If it is what they searched for, say so in "
            "its description, or in `aliases`.",
        )
    if len(cluster.terms) <= MAX_PHRASE_TERMS:
        return _searches(cluster, after, advice, field)
    return _searches(
        cluster,
        after,
        f"Callers used {after[0]} soon afterwards: say in its description, or in `aliases`, what "
        "they call it.",
    )


def _unused(cluster: Cluster, known: set[str]) -> SearchFinding:
    if after := followed(cluster.outcomes, known)[:MAX_ITEMS]:
        return _followed(
            cluster,
            after,
            f"Pin {after[0]} for these words with `pin`: callers used it soon afterwards.",
            "pin",
        )
    hits = Counter(item for one in cluster.outcomes for item in one.search.hits)
    shown = sorted((item for item in hits if item in known), key=lambda item: (-hits[item], item))
    return _searches(
        cluster,
        shown[:MAX_ITEMS],
        "Check the results of these searches: pin the right item, write a skill if it is missing, "
        "or say in the shown items when not to use them (`when_not_to_use`).",
    )


def _slow(cluster: Cluster) -> SearchFinding:
    return _searches(
        cluster,
        [],
        "Compare with `repertory stats` and the log of that time: an index that was being built, a "
        "model that was being loaded, or a busy store. A long task takes longer than some words.",
    )


def _never_found(
    entries: Sequence[Entry], found: Counter[str], searches: int
) -> Iterator[ItemFinding]:
    """Items that were never found: whole servers and sources first, then single items."""
    # Each search finds only a few items, so a few searches say little about many items.
    later = "If this does not change with more searches: "
    is_early = searches < len(entries)
    remove, say = (f"{later}remove", f"{later}say") if is_early else ("Remove", "Say")
    missed: defaultdict[str, list[str]] = defaultdict(list)
    for entry in sorted(entries, key=lambda one: (_ORDER[one.kind], one.id)):
        if entry.id not in found:
            missed[entry.server or entry.source].append(entry.id)
    sizes = Counter(entry.server or entry.source for entry in entries)
    whole = [name for name, ids in missed.items() if MIN_GROUP <= len(ids) == sizes[name]]
    for name in sorted(whole, key=lambda one: (-sizes[one], one)):
        yield ItemFinding(
            items=missed.pop(name)[:MAX_ITEMS],
            found=0,
            advice=f"No search found any of the {sizes[name]:,} items of {name}. {remove} it, "
            "if it is not needed.",
        )
    for item in (item for ids in missed.values() for item in ids):
        yield ItemFinding(
            items=[item],
            found=0,
            advice=f"{say} in its description what it is for, add an alias, or remove it.",
        )


def _never_used(
    entries: Sequence[Entry], found: Counter[str], used: set[str]
) -> Iterator[ItemFinding]:
    for entry in sorted(entries, key=lambda one: (-found[one.id], _ORDER[one.kind], one.id)):
        is_deprecated = entry.policy and entry.policy.deprecated_by
        if found[entry.id] >= OFTEN and entry.id not in used and not is_deprecated:
            yield ItemFinding(
                items=[entry.id],
                found=found[entry.id],
                advice="Say in `when_not_to_use` what it is not for, name its successor in "
                "`deprecated_by`, or remove it.",
            )


def _alike(entries: Sequence[Entry], found: Counter[str]) -> Iterator[ItemFinding]:
    copies = similar_items.copies(entries)
    for ids in copies:
        yield ItemFinding(
            items=ids,
            found=found[ids[0]],
            advice="They are the same: keep one and remove the others.",
        )
    for one, other in similar_items.similar(entries):
        yield ItemFinding(
            items=[one, other],
            found=found[one],
            advice="Their descriptions are nearly the same: say in each what only it does, or name "
            "one in `deprecated_by` of the other.",
        )
    told = {item for ids in copies for item in ids}
    for item, why in likenesses(entries)[0].items():
        if item not in told:
            yield ItemFinding(items=[item], found=found[item], advice=why)


def _shadowed(
    entries: Sequence[Entry], sources: Sequence[SourceState], found: Counter[str]
) -> Iterator[ItemFinding]:
    for item, first in similar_items.shadowed(entries, [one.name for one in sources]):
        yield ItemFinding(
            items=[item, first],
            found=found[item],
            advice=f"{first} takes precedence: rename or remove one of them.",
        )


def _stale(sources: Sequence[SourceState], now: float) -> Iterator[StaleSource]:
    for one in sources:
        if one.awaits_trust or one.is_starting or not (one.seen or one.stale or one.error):
            continue  # it was never read, so nothing is out of date
        is_old = bool(one.seen) and now - one.seen > STALE_S
        if one.state != "fresh" or is_old:
            yield StaleSource(
                source=one.name, state=one.state, seen=one.seen, advice=_repair(one, now)
            )


def _repair(source: SourceState, now: float) -> str:
    if source.awaits_sign_in:
        return f"Sign in with `repertory login {shlex.quote(source.name)}`."
    if source.awaits_input:
        return source.error
    if source.error:
        return f"Repair it or remove it: {source.error}"
    if source.stale:
        return f"{source.stale:,} of its items cannot be read now; `repertory doctor` lists them."
    return f"It was read {ago(now - source.seen)}; run `repertory index`, or a server."


def _quantile(durations: Sequence[float], share: float) -> float:
    """The shortest duration that a share of ascending durations does not exceed; 0 without any."""
    return durations[math.ceil(share * len(durations)) - 1] if durations else 0.0
