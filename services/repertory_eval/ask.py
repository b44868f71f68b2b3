"""Asks sets of queries under the active settings and under others."""

from collections.abc import Mapping, Sequence

from repertory.backend import Backend
from repertory.catalogue.item import Kind
from repertory.errors import StoreError, UsageError
from repertory.search.answer import Answer
from repertory.search.engine import SearchEngine
from repertory.search.query import query_of
from repertory.settings import Settings, Values
from repertory_admin import terminal
from repertory_admin.progress import Bars
from repertory_eval.generate import generate
from repertory_eval.labelled import LabelledQuery
from repertory_eval.measure import DEPTH, Outcome, outcomes
from repertory_eval.reliability import Reliability, observe, reliability
from repertory_eval.trial import Trial

GENERATED_QUERIES = 200  # of each kind
ACTIVE = ""  # the change that leaves the active settings as they are


class Asking:
    """Asks sets of queries.

    Args:
        backend: Answers them.
        tried: The settings under which each set is asked, by the ``--against`` that changes them.
        bars: Shows the progress.
    """

    def __init__(self, backend: Backend, tried: Mapping[str, Settings], bars: Bars) -> None:
        self._backend = backend
        self._tried = tried
        self._bars = bars
        self._warned = {""}  # the reasons why an arm did not answer

    def labelled(self, name: str, queries: Sequence[LabelledQuery], engine: SearchEngine) -> Trial:
        """Ask labelled queries, without the threshold unless ``--against`` changes it.

        Args:
            name: The name of the set.
            queries: Its queries.
            engine: Searches the same items, with some excluded.
        """
        results = self._results(queries, f"Searching {name}", has_threshold=False)
        return Trial(
            name=name,
            is_generated=False,
            results=results.pop(ACTIVE),
            others=results,
            confidence=self._confidence(name, queries, engine),
        )

    def generated(self, name: str, limit: int | None) -> Trial:
        """Ask queries made from the items, with the threshold, as a user would.

        Args:
            name: The name of the set.
            limit: The maximum number of each kind; 0 asks all, None ``GENERATED_QUERIES``.

        Raises:
            UsageError: Nothing is indexed that queries could be made from.
        """
        limit = GENERATED_QUERIES if limit is None else limit
        queries = generate(self._backend.entries(), limit, self._bodies())
        if not queries:
            raise UsageError("Nothing is indexed here that queries could be generated for.")
        results = self._results(queries, f"Searching {name}, generated", has_threshold=True)
        return Trial(name=name, is_generated=True, results=results.pop(ACTIVE), others=results)

    def _bodies(self) -> dict[str, str]:
        """The bodies of the indexed items by id; empty if only words are indexed."""
        ids = [entry.id for entry in self._backend.entries() if entry.kind is not Kind.TOOL]
        try:
            return {item: whole.body for item, whole in self._backend.items(ids).items()}
        except StoreError:
            return {}

    def _confidence(
        self, name: str, queries: Sequence[LabelledQuery], engine: SearchEngine
    ) -> Reliability:
        values = self._tried[ACTIVE].values

        def find(text: str, threshold: float, exclude: Sequence[str]) -> list[tuple[str, float]]:
            query = query_of(values, text, limit=DEPTH, threshold=threshold)
            answer = self._checked(engine.search(query, exclude=exclude))
            return [(hit.id, hit.confidence) for hit in answer.hits]

        def step(done: int) -> None:
            self._bars.step(f"Testing the confidence for {name}", done, len(queries))

        return reliability(observe(queries, find, values.threshold, step))

    def _results(
        self, queries: Sequence[LabelledQuery], stage: str, *, has_threshold: bool
    ) -> dict[str, list[Outcome]]:
        """The outcomes under all settings, by the change.

        Args:
            queries: The queries.
            stage: The text of the progress bar.
            has_threshold: Whether the threshold applies even if no change names it.
        """
        results = {}
        for changed, settings in self._tried.items():
            values = settings.values
            threshold = values.threshold if has_threshold or "threshold" in changed else 0.0
            results[changed] = self._outcomes(
                queries, values, threshold, f"{stage}, {changed}" if changed else stage
            )
        return results

    def _outcomes(
        self, queries: Sequence[LabelledQuery], values: Values, threshold: float, stage: str
    ) -> list[Outcome]:
        def search(text: str, threshold: float) -> list[str]:
            query = query_of(values, text, limit=DEPTH, threshold=threshold)
            return [hit.id for hit in self._checked(self._backend.search(query)).hits]

        return outcomes(
            queries,
            lambda text: search(text, threshold),
            lambda done: self._bars.step(stage, done, len(queries)),
            without_threshold=lambda text: search(text, 0.0),
        )

    def _checked(self, answer: Answer) -> Answer:
        """The answer, after a warning if an arm is missing for a new reason."""
        if answer.degraded not in self._warned:
            self._warned.add(answer.degraded)
            terminal.warn(f"degraded, answered by {answer.mode} alone: {answer.degraded}")
        return answer
