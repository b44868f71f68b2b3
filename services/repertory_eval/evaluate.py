"""``repertory eval``: the figures of the ranking, on labelled and on generated queries."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repertory.errors import StoreError, UsageError
from repertory.settings import Settings, Values, load
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.exits import ExitCode
from repertory_admin.options import ASKING, INDEXING, STORE, WEIGHTS, Flags, Output, OutputOption

if TYPE_CHECKING:
    from repertory.indexing.report import Report

    from repertory.backend import Backend
    from repertory.one_shot import Repertory
    from repertory.search.answer import Answer
    from repertory.search.query import Query
    from repertory_admin.progress import Bars
    from repertory_eval.labelled import LabelledQuery, LabelledSet
    from repertory_eval.measure import Outcome
    from repertory_eval.reliability import Reliability
    from repertory_eval.trial import Trial

GENERATED_QUERIES = 200  # of each kind
MOST_PROBLEMS = 3  # of a corpus that are told
IN_FORCE = ""  # what is changed of the settings in force
TRIED = (*WEIGHTS, "threshold")  # settings that decide about searches alone


@command(
    app,
    "eval",
    settings=(*STORE, *INDEXING, *TRIED, *ASKING),
    examples=(
        "repertory eval",
        "repertory eval my-labelled-set --generate",
        "repertory eval sets/* --min-recall 0.8 --output json",
        "repertory eval sets/* --against alpha=0.5 --against alpha=0.5,name_weight=1",
    ),
)
def evaluate(
    flags: Flags,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FOLDER",
            help="Labelled sets: folders of corpus.jsonl, queries.jsonl and qrels.jsonl  "
            "[default: generated queries for what is indexed here]",
            show_default=False,
        ),
    ] = None,
    generate: Annotated[
        bool, typer.Option("--generate", help="Ask generated queries for labelled sets, too.")
    ] = False,
    queries: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Ask at most so many of a labelled set, and of each generated kind; 0 asks all  "
            f"[default: all; {GENERATED_QUERIES} of each generated kind]",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SETTING=VALUE",
            help=f"Compare with another {', '.join(TRIED)}; several with commas; repeatable.",
            show_default=False,
        ),
    ] = None,
    worst: Annotated[int, typer.Option(min=0, help="Show so many of the worst items.")] = 10,
    min_recall: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Exit code 1 if a set's recall@5 (generated: hit@5) is lower."
        ),
    ] = 0.0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure the ranking on labelled or generated queries.

    Labelled sets are indexed apart from your own items and searched without a threshold, unless
    `--against` tries one. Generated
    queries are made from the items: names in every spelling, begun and misspelt, descriptions, and
    sections of bodies.
    All figures have 95 % confidence intervals.
    """
    from repertory_eval import trials  # noqa: PLC0415 - likewise
    from repertory_eval.labelled import read_sets  # noqa: PLC0415 - --help must be instant

    directory = Path.cwd()
    tried = {IN_FORCE: load(flags, directory)}
    tried |= {text: _changed(flags, text, directory) for text in against or ()}
    made: list[Trial] = []
    if folders:
        for labelled in read_sets(folders):
            made += _of_labelled(labelled, tried, queries, generate=generate)
    else:
        made.append(_of_own(directory, tried, queries))
    if output is Output.JSON:
        terminal.show_json([trials.as_json(trial, worst) for trial in made])
    else:
        trials.show(made, worst)
    low = [trial for trial in made if trial.judged().mean < min_recall]
    for trial in low:
        figure = trial.judged()
        terminal.warn(
            f"{trials.title(trial)}: {figure.name} is {figure.mean:.3f}, lower than {min_recall:g}"
        )
    if low:
        raise typer.Exit(ExitCode.NOT_FOUND)


def _changed(flags: Flags, text: str, directory: Path) -> Settings:
    """The settings with what an ``--against`` changes."""
    changes = {}
    for change in text.split(","):
        name, equals, value = change.partition("=")
        field = name.strip().replace("-", "_")
        if not equals or field not in TRIED:
            raise UsageError(
                f"--against cannot try {change.strip()!r}; give SETTING=VALUE with one of "
                f"{', '.join(TRIED)}, which need no other index."
            )
        changes[field] = value.strip()
    return load({**flags, **changes}, directory)


def _of_own(directory: Path, tried: Mapping[str, Settings], most: int | None) -> "Trial":
    """Generated queries for what is indexed here."""
    from repertory_admin.backend import target  # noqa: PLC0415 - --help must be instant
    from repertory_admin.progress import Bars  # noqa: PLC0415 - --help must be instant

    with Bars() as bars, target(tried[IN_FORCE], directory).open_indexed(bars) as answering:
        return _generated(_Asking(answering, tried, bars), directory.name or "/", most)


def _of_labelled(
    labelled: "LabelledSet", tried: Mapping[str, Settings], most: int | None, *, generate: bool
) -> "list[Trial]":
    """A labelled set's queries, and those that are generated from its corpus if they are wanted."""
    from repertory.one_shot import open_corpus  # noqa: PLC0415 - --help must be instant
    from repertory_admin.progress import Bars  # noqa: PLC0415 - likewise
    from repertory_eval.labelled import evenly  # noqa: PLC0415 - likewise

    queries = evenly(labelled.queries, most or 0)
    with Bars() as bars, open_corpus(tried[IN_FORCE], labelled.folder, bars.download) as repertory:
        warn_of(labelled, repertory.index(bars.step, words_suffice=True), repertory)
        asking = _Asking(repertory, tried, bars, repertory)
        made = [asking.trial(labelled.name, queries, is_generated=False)]
        if generate:
            made.append(_generated(asking, labelled.name, most))
    return made


def warn_of(labelled: "LabelledSet", report: "Report", corpus: "Backend") -> None:
    """Tell what is wrong with a labelled set, now that it is indexed."""
    from repertory_eval.labelled import missing  # noqa: PLC0415 - --help must be instant

    notices = [*report.notices, *map(str, report.problems[:MOST_PROBLEMS])]
    if absent := missing(labelled.queries, (entry.id for entry in corpus.entries())):
        some = ", ".join(absent[:MOST_PROBLEMS]) + ", …" * (len(absent) > MOST_PROBLEMS)
        answers = terminal.count(len(absent), "right answer")
        notices.append(f"The corpus lacks {answers}, which no search can find: {some}.")
    for notice in notices:
        terminal.warn(f"{labelled.name}: {notice}")


def _generated(asking: "_Asking", name: str, most: int | None) -> "Trial":
    from repertory_eval.generate import generate  # noqa: PLC0415 - --help must be instant

    answering = asking.answering
    most = GENERATED_QUERIES if most is None else most
    queries = generate(answering.entries(), most, _bodies(answering))
    if not queries:
        raise UsageError("Nothing is indexed here that queries could be generated for.")
    return asking.trial(name, queries, is_generated=True)


def _bodies(answering: "Backend") -> dict[str, str]:
    """The bodies of what is indexed, by id; none where words alone are."""
    from repertory.catalogue.item import Kind  # noqa: PLC0415 - --help must be instant

    having = [entry.id for entry in answering.entries() if entry.kind is not Kind.TOOL]
    try:
        return {item: whole.body for item, whole in answering.items(having).items()}
    except StoreError:
        return {}


class _Asking:
    """Asks sets of queries.

    Args:
        answering: What is asked.
        tried: The settings under which each is asked, by what ``--against`` changes.
        bars: Told how far it is.
        corpus: A labelled set's, which can be searched without the right answers.
    """

    def __init__(
        self,
        answering: "Backend",
        tried: Mapping[str, Settings],
        bars: "Bars",
        corpus: "Repertory | None" = None,
    ) -> None:
        self.answering = answering
        self._corpus = corpus
        self._tried = tried
        self._bars = bars
        self._told = {""}  # why an arm did not answer

    def trial(
        self, name: str, queries: "Sequence[LabelledQuery]", *, is_generated: bool
    ) -> "Trial":
        """Ask a set of queries, generated ones with the threshold on, as a user would."""
        from repertory_eval.trial import Trial  # noqa: PLC0415 - --help must be instant

        results = {}
        for changed, settings in self._tried.items():
            has_threshold = is_generated or "threshold" in changed
            results[changed] = self._outcomes(
                queries,
                settings.values,
                settings.values.threshold if has_threshold else 0.0,
                " ".join(filter(None, ("Searching", name, "generated" * is_generated, changed))),
            )
        return Trial(
            name=name,
            is_generated=is_generated,
            results=results.pop(IN_FORCE),
            others=results,
            confidence=None if is_generated else self._confidence(name, queries),
        )

    def _confidence(self, name: str, queries: "Sequence[LabelledQuery]") -> "Reliability":
        from repertory_eval.reliability import observe, reliability  # noqa: PLC0415 - --help

        values = self._tried[IN_FORCE].values
        stage = f"Testing the confidence for {name}"

        def find(text: str, threshold: float, without: tuple[str, ...]) -> list[tuple[str, float]]:
            hits = self._search(_query(text, values, threshold), exclude=without).hits
            return [(hit.id, hit.confidence) for hit in hits]

        def done() -> None:
            self._bars.step(stage, 1, len(queries))

        return reliability(observe(queries, find, values.threshold, done))

    def _outcomes(
        self, queries: "Sequence[LabelledQuery]", values: Values, threshold: float, stage: str
    ) -> "list[Outcome]":
        from repertory_eval.measure import outcomes  # noqa: PLC0415 - --help must be instant

        def search(text: str, threshold: float = threshold) -> list[str]:
            return [hit.id for hit in self._search(_query(text, values, threshold)).hits]

        return outcomes(
            queries,
            search,
            lambda: self._bars.step(stage, 1, len(queries)),
            without_threshold=lambda text: search(text, 0.0),
        )

    def _search(self, query: "Query", exclude: Sequence[str] = ()) -> "Answer":
        if exclude and self._corpus:
            answer = self._corpus.engine.search(query, exclude=exclude)
        else:
            answer = self.answering.search(query)
        if answer.degraded not in self._told:
            self._told.add(answer.degraded)
            terminal.warn(f"degraded, answered by {answer.mode} alone: {answer.degraded}")
        return answer


def _query(text: str, values: Values, threshold: float) -> "Query":
    from repertory.search.query import query_of  # noqa: PLC0415 - likewise
    from repertory_eval.measure import DEPTH  # noqa: PLC0415 - --help must be instant

    return query_of(values, text, limit=DEPTH, threshold=threshold)
