"""Runs sets of queries under the active settings and under others."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from repertory.backend import Backend
from repertory.catalogue.item import Kind
from repertory.errors import StoreError, UsageError
from repertory.local.one_shot import Repertory
from repertory.search.answer import Answer
from repertory.search.query import query_of
from repertory.settings import Settings
from repertory.values import Values
from repertory_admin.progress import Bars
from repertory_admin.show.answers import warn_if_degraded
from repertory_admin.target import target
from repertory_eval.corpus import indexed
from repertory_eval.generate import generate
from repertory_eval.judged import Observed, stated
from repertory_eval.labelled import LabelledQuery, evenly, read_sets
from repertory_eval.measure import DEPTH, Found, Outcome, outcomes
from repertory_eval.trial import Trial

ACTIVE = ""  # the empty change: the active settings


class Evaluation:
    """Runs sets of queries.

    Args:
        active: The active settings.
        others: The settings to compare with, by their ``--against`` option.
        generated: The maximum number of generated queries of each kind; 0 means all.
    """

    def __init__(self, active: Settings, others: Mapping[str, Settings], generated: int) -> None:
        self._active = active
        self._tried = {ACTIVE: active, **others}
        self._limit = generated
        self._warned = {""}  # the reasons why an arm did not answer

    def of_directory(self, directory: Path) -> Trial:
        """Run generated queries for the items that are indexed in a directory."""
        with Bars() as bars, target(self._active, directory).open(bars) as backend:
            return self._generated(directory.name or "/", backend, bars)

    def of_sets(self, folders: Iterable[Path], limit: int, *, generate: bool) -> list[Trial]:
        """Run the queries of labelled sets and, on request, generated ones for each corpus.

        Args:
            folders: The sets.
            limit: The maximum number of queries per set; 0 means all.
            generate: Whether to run generated queries, too.
        """
        trials = []
        for labelled in read_sets(folders):
            queries = evenly(labelled.queries, limit)
            with (
                Bars() as bars,
                indexed(labelled, self._active, bars, words_suffice=True) as repertory,
            ):
                results = self._results(repertory, bars, queries, labelled.name)
                judged = self._judged(
                    repertory, bars, evenly(labelled.judged, limit), labelled.name
                )
                trials.append(
                    Trial(
                        name=labelled.name,
                        is_generated=False,
                        results=results.pop(ACTIVE),
                        others=results,
                        judged=judged,
                    )
                )
                if generate:
                    trials.append(self._generated(labelled.name, repertory, bars))
        return trials

    def _generated(self, name: str, backend: Backend, bars: Bars) -> Trial:
        """Run queries generated from the items, with the threshold, like a user's queries.

        Raises:
            UsageError: No indexed item yields a query.
        """
        queries = generate(backend.entries(), self._limit, _bodies(backend))
        if not queries:
            raise UsageError("Nothing is indexed here that queries could be generated for.")
        results = self._results(backend, bars, queries, f"{name}, generated", has_threshold=True)
        return Trial(name=name, is_generated=True, results=results.pop(ACTIVE), others=results)

    def _judged(
        self, repertory: Repertory, bars: Bars, queries: Sequence[LabelledQuery], name: str
    ) -> list[Observed]:
        """The results of judged queries under the active settings."""
        engine, observed = repertory.engine, []
        for done, query in enumerate(queries, start=1):
            asked = query_of(self._active.values, query.text)
            shown = found(self._checked(engine.search(asked)))
            probabilities = stated(engine, asked, query.grades)
            observed.append(Observed(query=query, shown=shown, stated=probabilities))
            bars.step(f"Testing the confidence for {name}", done, len(queries))
        return observed

    def _results(
        self,
        backend: Backend,
        bars: Bars,
        queries: Sequence[LabelledQuery],
        name: str,
        *,
        has_threshold: bool = False,
    ) -> dict[str, list[Outcome]]:
        """The outcomes under all settings, by change.

        The threshold applies to changes that set it, and to all changes if ``has_threshold``.
        """
        results = {}
        for changed, settings in self._tried.items():
            stage = f"Searching {name}" + (f", {changed}" if changed else "")
            step = partial(bars.step, stage, total=len(queries))
            search = partial(self._search, backend, settings.values)
            cut = has_threshold or "threshold" in changed
            results[changed] = outcomes(queries, search, step, has_threshold=cut)
        return results

    def _search(
        self, backend: Backend, values: Values, text: str, has_threshold: bool
    ) -> list[Found]:
        threshold = None if has_threshold else 0.0
        query = query_of(values, text, limit=DEPTH, threshold=threshold)
        return found(self._checked(backend.search(query)))

    def _checked(self, answer: Answer) -> Answer:
        """The answer, after a warning if an arm is unavailable for a new reason."""
        if answer.degraded not in self._warned:
            self._warned.add(answer.degraded)
            warn_if_degraded(answer)
        return answer


def found(answer: Answer) -> list[Found]:
    """The ids of each hit: its own, then those of its duplicates."""
    return [(hit.id, *hit.duplicates) for hit in answer.hits]


def _bodies(backend: Backend) -> dict[str, str]:
    """The bodies of the indexed skills and documents by id; empty if only keywords are indexed."""
    ids = [entry.id for entry in backend.entries() if entry.kind is not Kind.TOOL]
    try:
        return {item: whole.body for item, whole in backend.items(ids).items()}
    except StoreError:
        return {}
