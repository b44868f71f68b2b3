"""The results of ``benchmarks.sizes``, and their tables in ``docs/sizing.md``."""

from pathlib import Path

import msgspec

RESULTS = Path(__file__).with_name("sizes.json")
DOCUMENT = Path(__file__).parents[1] / "docs" / "sizing.md"
_BEGIN, _END = "<!-- table -->\n", "<!-- end of table -->\n"
_SPEED = """\
| items | mode | search | beside its embedding | save → found | build |
| --- | --- | --- | --- | --- | --- |
"""
_RESOURCES = """
| items | process | memory | CPU of the build | CPU of a save | CPU of a search |
| --- | --- | --- | --- | --- | --- |
"""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The resources of one process.

    Attributes:
        name: The command or the server.
        memory: Resident megabytes at the end, or the peak for a process that has exited.
        build_cpu: Seconds until everything was indexed.
        save_cpu: Seconds for one save; None for a process that is not involved.
        search_cpu: Seconds for one search; None for a process that is not involved.
    """

    name: str
    memory: float
    build_cpu: float
    save_cpu: float | None = None
    search_cpu: float | None = None


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one size.

    Attributes:
        mode: ``embedded`` or ``team``.
        store: The vector store.
        items: The number of items.
        texts: The number of their vectors.
        build_s: Seconds to build the index from stored vectors, without embedding.
        processes: The resources of each process.
        save_s: Seconds from a save to its first hit, p50.
        search_ms: The time of a search over HTTP, one at a time, p50.
        embedding_ms: The time of only embedding the query, p50.
        embedding_cpu: CPU seconds of embedding the query.
    """

    mode: str
    store: str
    items: int
    texts: int
    build_s: float
    processes: list[Work]
    save_s: float
    search_ms: float
    embedding_ms: float
    embedding_cpu: float

    @property
    def ratio(self) -> float:
        """The time of a search divided by the time of embedding its query."""
        return self.search_ms / self.embedding_ms


def read() -> list[Size]:
    """The stored results, ordered by size."""
    try:
        content = RESULTS.read_bytes()
    except FileNotFoundError:
        return []
    return msgspec.json.decode(content, type=list[Size])


def keep(size: Size) -> None:
    """Store a result in place of an earlier one of the same mode and size; update the tables."""
    others = [one for one in read() if (one.mode, one.items) != (size.mode, size.items)]
    sizes = sorted([*others, size], key=lambda one: (one.items, one.mode))
    rows = [{**msgspec.to_builtins(one), "ratio": one.ratio} for one in sizes]
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(rows)) + b"\n")
    DOCUMENT.write_text(with_table(DOCUMENT.read_text("utf-8"), sizes), "utf-8")


def with_table(document: str, sizes: list[Size]) -> str:
    """Replace the tables in a document by the tables of these results."""
    before, _, rest = document.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return before + _BEGIN + tables(sizes) + _END + after


def tables(sizes: list[Size]) -> str:
    """The results as Markdown tables: one with a line per size, one with a line per process."""
    speed, resources = [_SPEED], [_RESOURCES]
    for size in sizes:
        speed.append(
            _line(
                f"{size.items:,}",
                f"{size.mode} ({size.store})",
                f"{size.search_ms:.0f} ms",
                f"{size.ratio:.1f} times",
                f"{size.save_s:.2f} s",
                f"{size.build_s:.0f} s",
            )
        )
        for work in size.processes:
            small = [
                "" if cpu is None else f"{cpu * 1e3:.0f} ms"
                for cpu in (work.save_cpu, work.search_cpu)
            ]
            resources.append(
                _line(
                    f"{size.items:,}",
                    f"{size.mode}: {work.name}",
                    f"{work.memory:.0f} MB",
                    f"{work.build_cpu:.0f} s",
                    *small,
                )
            )
    return "".join(speed + resources)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"
