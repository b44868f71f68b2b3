"""Indexes the corpus of a labelled set, apart from the user's own items."""

from collections.abc import Iterator
from contextlib import contextmanager

from repertory.one_shot import Repertory, open_corpus
from repertory.settings import Settings
from repertory.text import counted
from repertory_admin import terminal
from repertory_admin.progress import Bars
from repertory_eval.labelled import LabelledSet, missing

MAX_SHOWN = 3  # problems and ids in a warning


@contextmanager
def indexed(
    labelled: LabelledSet, settings: Settings, bars: Bars, *, words_suffice: bool = False
) -> Iterator[Repertory]:
    """Index a corpus and open it, with a warning for each problem.

    Args:
        labelled: The set.
        settings: The settings.
        bars: Shows the progress.
        words_suffice: Whether an index of words alone is enough if no model can be loaded.
    """
    with open_corpus(settings, labelled.folder, bars.download) as repertory:
        run = repertory.index(bars.step, words_suffice=words_suffice)
        warnings = [*labelled.problems[:MAX_SHOWN], *run.notices]
        warnings += map(str, run.stats.problems[:MAX_SHOWN])
        if absent := missing(labelled.queries, (entry.id for entry in repertory.entries())):
            some = ", ".join(absent[:MAX_SHOWN]) + ", …" * (len(absent) > MAX_SHOWN)
            answers = counted(len(absent), "right answer")
            warnings.append(f"The corpus lacks {answers}, which no search can find: {some}.")
        for warning in warnings:
            terminal.warn(f"{labelled.name}: {warning}")
        yield repertory
