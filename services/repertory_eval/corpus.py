"""Opens and indexes the corpus of a labelled set, separately from the user's own items."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from repertory.local.one_shot import Repertory
from repertory.settings import Settings
from repertory.system.progress import Download
from repertory.text import counted
from repertory.usage.labels import CORPUS
from repertory_admin import terminal
from repertory_admin.progress import Bars
from repertory_eval.labelled import LabelledSet, missing

MAX_SHOWN = 3  # problems and ids in a warning


def open_corpus(settings: Settings, folder: Path, download: Download | None = None) -> Repertory:
    """The repertory of a labelled set's corpus, without the user's own items and policies."""
    base = folder.resolve()
    alone = replace(
        settings,
        sources=({"type": "corpus", "path": str(base / CORPUS)},),
        rules=(),
        base=base,
        file=None,
        is_confined=False,
        withheld=(),
        mcp_configs=(),
    )
    # The corpus file serves as the directory, so that no paths were ever given for it.
    return Repertory(alone, base / CORPUS, download=download)


@contextmanager
def indexed(
    labelled: LabelledSet, settings: Settings, bars: Bars, *, words_suffice: bool = False
) -> Iterator[Repertory]:
    """Index a corpus and open it, with a warning for each problem.

    Args:
        labelled: The set.
        settings: The settings.
        bars: Shows the progress.
        words_suffice: Whether a keyword index is enough if no model can be loaded.
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
