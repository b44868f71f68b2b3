"""Freshness: a record of what the last command read, to detect changes of the sources."""

import contextlib
import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec

from repertory.indexing.collection_names import configuration_of
from repertory.project.workspace import Workspace
from repertory.sources.folder_memory import FolderState, KnownFile, Memory, settled_signature
from repertory.sources.source import Source
from repertory.system.files import Signature, signature, write_atomically
from repertory.text import is_unicode

if TYPE_CHECKING:  # a search of a current index imports no source
    from repertory.indexing.scan import ScanResult
    from repertory.sources.configured import Catalogue

VERSION = 5
SEARCHED = "searched"  # a pseudo source for the folders that were searched for sources

T = TypeVar("T")


class _Record(msgspec.Struct, frozen=True, array_like=True):
    """The record that one command leaves for the next.

    Attributes:
        configuration: The hash of the indexed configuration.
        request: The requested configuration; see ``Workspace.request``.
        rules: A digest of the policies, which are part of the indexed items.
        is_written: Whether the index holds all that this command and earlier ones have read.
        followed: The files and folders that determine the catalogue, with their signatures.
        seen: The files and folders of each source, by the digest of its identity.
        known: The content read from the files of each source, by the same digest. It is decoded
            only if something has changed.
        is_escaped: Whether all paths are escaped, because at least one is not valid Unicode.
    """

    version: int
    configuration: str
    request: str
    rules: str
    is_written: bool
    followed: dict[str, Signature | None]
    seen: dict[str, FolderState]
    known: msgspec.Raw
    is_escaped: bool = False


class Freshness:
    """Compares the sources of a workspace with what the last command read."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._file = workspace.seen_file
        self._record = self._load()
        self._stored = self._record.configuration if self._record else ""  # as in the file
        self._followed: dict[str, Signature | None] = {}
        # The state of single-file sources before reading, by digest.
        self._single: dict[str, FolderState] = {}
        self._searched = FolderState()
        self._is_postponed = False

    def is_current(self, configuration: str) -> bool:
        """Whether nothing has changed since the record, by the sizes and times of all files.

        Args:
            configuration: The hash of the currently indexed configuration.
        """
        last = self._record
        return (
            last is not None
            and self._is_of(last, configuration)
            and all(seen.is_current() for seen in last.seen.values())
        )

    def note_configuration(self) -> None:
        """Record the files that determine the catalogue, before they are read."""
        paths = (*self._workspace.followed(), *self._workspace.sources.may_list_tools())
        self._followed = {str(path): signature(str(path)) for path in paths}

    def note_sources(self, catalogue: "Catalogue") -> None:
        """Record single-file sources before they are read, and the folders searched for sources."""
        self._searched = FolderState(catalogue.searched)
        for source in catalogue.sources:
            if source.file:
                state = FolderState(files={source.file: settled_signature(source.file)})
                self._single[_digest(source)] = state

    def scan(
        self, catalogue: "Catalogue", configuration: str, is_late: Callable[[], bool]
    ) -> "tuple[list[ScanResult], bool]":
        """Scan the sources that need no server. Files are read only if they have changed.

        Args:
            catalogue: The sources.
            configuration: The hash of the currently indexed configuration.
            is_late: Whether the time budget is used up, so that no other file is read. It is
                ignored without a usable record of the index; then all files are read.

        Returns:
            The scans, and whether they differ from what the last command read.
        """
        from repertory.sources.folder import FolderSource  # noqa: PLC0415 - only after a change

        memories = self._memories(configuration)
        last = self._record
        news = not (last and self._is_of(last, catalogue.hash))
        scans = _scans(catalogue, memories, is_late if memories else lambda: False)
        for result in scans:
            source = result.source
            if isinstance(source, FolderSource):
                self._is_postponed |= result.scan is not None and bool(result.scan.postponed)
                now, before = source.memory(), memories.get(_digest(source), Memory())
                news |= self._is_postponed or now.known != before.known
                news |= now.seen.problems != before.seen.problems
            elif source.file:
                state = last.seen.get(_digest(source)) if last else None
                news |= state is None or not state.is_current()
        return scans, news

    def forget(self, collection: str) -> None:
        """Remove the records of a collection's content before the collection is changed.

        This command's record is removed if it is about the collection. Records of commands with
        other settings are always removed, because they may be about it. If this command ends
        without a new record, the next one reads all files. Otherwise it could trust an old record
        of a file that was indexed with other content and then changed back.
        """
        with contextlib.suppress(OSError):
            for file in self._workspace.seen_files:
                if file != self._file or self._stored == configuration_of(collection):
                    file.unlink(missing_ok=True)

    def remember(
        self, catalogue: "Catalogue", unwritten: Iterable[str] = (), *, is_finished: bool = True
    ) -> None:
        """Write a record for the next command. If that fails, the next command is only slower.

        Args:
            catalogue: The indexed sources, which have been scanned.
            unwritten: The items that are not indexed yet; the next command reads their files again.
            is_finished: Whether everything that was read has been compared with the index.
        """
        from repertory.sources.folder import FolderSource  # noqa: PLC0415 - only after a change

        again = frozenset(unwritten)
        # A postponed file may be one that an earlier command read but did not index.
        is_left = self._is_postponed and self._record is not None and not self._record.is_written
        seen: dict[str, FolderState] = {}
        known: dict[str, Mapping[str, KnownFile]] = {}
        for source in catalogue.sources:
            if isinstance(source, FolderSource):
                memory = source.memory().without(again)
                seen[_digest(source)] = memory.seen
                known[_digest(source)] = memory.known
            elif source.file:
                seen[_digest(source)] = self._single[_digest(source)]
        listed = _without_repetitions({**seen, SEARCHED: self._searched}, known)
        is_escaped = not all(map(is_unicode, _paths(self._followed, listed)))
        escape = _escaped if is_escaped else str
        with contextlib.suppress(OSError, UnicodeEncodeError):  # a message may be invalid Unicode
            record = _Record(
                version=VERSION,
                configuration=catalogue.hash,
                request=self._workspace.request,
                rules=self._workspace.rules,
                is_written=is_finished and not again and not is_left,
                followed=_renamed(self._followed, escape),
                seen={digest: _of_paths(one, escape) for digest, one in listed.items()},
                known=msgspec.Raw(
                    msgspec.msgpack.encode(
                        {digest: _renamed(files, escape) for digest, files in known.items()}
                    )
                ),
                is_escaped=is_escaped,
            )
            write_atomically(self._file, msgspec.msgpack.encode(record))
            self._stored = catalogue.hash

    def _memories(self, configuration: str) -> Mapping[str, Memory]:
        """The known files of each source, by its digest; empty if they may not be indexed."""
        last = self._record
        if last is None or (last.configuration, last.rules) != (
            configuration,
            self._workspace.rules,
        ):
            return {}
        try:
            known = msgspec.msgpack.decode(last.known, type=dict[str, dict[str, KnownFile]])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return {}
        restore = _unescaped if last.is_escaped else str
        return {
            digest: Memory(last.seen[digest], _renamed(read, restore))
            for digest, read in known.items()
            if digest in last.seen
        }

    def _is_of(self, last: _Record, configuration: str) -> bool:
        """Whether a record is of this unchanged configuration, and all its items are indexed."""
        return (
            last.is_written
            and (last.configuration, last.request) == (configuration, self._workspace.request)
            and all(signature(path) == one for path, one in last.followed.items())
        )

    def _load(self) -> _Record | None:
        try:
            record = msgspec.msgpack.decode(self._file.read_bytes(), type=_Record)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        if record.version != VERSION:
            return None
        if not record.is_escaped:
            return record
        return msgspec.structs.replace(
            record,
            followed=_renamed(record.followed, _unescaped),
            seen={digest: _of_paths(one, _unescaped) for digest, one in record.seen.items()},
        )


def _scans(
    catalogue: "Catalogue", memories: Mapping[str, Memory], is_late: Callable[[], bool]
) -> "list[ScanResult]":
    """Scan the sources that need no server.

    If several items have the same id, the first one is used. So if one changes, all are read again.
    """
    from repertory.indexing.scan import scan_source  # noqa: PLC0415 - only after a change
    from repertory.sources.folder import FolderSource  # noqa: PLC0415 - as above

    due = [source for source in catalogue.sources if not source.asks_server]
    scans: dict[str, ScanResult] = {}  # by source, in the order of the catalogue
    again: dict[str, frozenset[str]] = {}  # items whose files are read again, by source
    changed: set[str] = set()
    while due:
        for source in due:
            memory = memories.get(_digest(source), Memory())
            if isinstance(source, FolderSource):
                source.resume(memory.without(again.get(source.name, frozenset())), is_late)
            scans[source.name] = scan_source(source)
            changed |= _changed(memory, scans[source.name])
        due = []
        for name, result in scans.items():
            others = changed & result.scan.unchanged if result.scan else frozenset()
            if others - again.get(name, frozenset()):
                again[name] = again.get(name, frozenset()) | others
                due.append(result.source)
    return list(scans.values())


def _changed(memory: Memory, result: "ScanResult") -> set[str]:
    """The ids of items that a scan read, or that no longer exist in the source."""
    if result.scan is None:
        return set()
    kept = result.scan.unchanged
    known = (item.id for one in memory.known.values() for item in one.items)
    return {item for item in known if item not in kept}.union(item.id for item in result.scan.items)


def _paths(followed: Iterable[str], seen: Mapping[str, FolderState]) -> Iterator[str]:
    yield from followed
    for one in seen.values():
        yield from one.folders
        yield from one.files


def _escaped(path: str) -> str:
    """Encode any path as valid Unicode, with one character per byte."""
    return os.fsencode(path).decode("latin-1")


def _unescaped(path: str) -> str:
    return os.fsdecode(path.encode("latin-1"))


def _renamed(named: Mapping[str, T], rename: Callable[[str], str]) -> dict[str, T]:
    return {rename(path): one for path, one in named.items()}


def _of_paths(seen: FolderState, rename: Callable[[str], str]) -> FolderState:
    folders, files = _renamed(seen.folders, rename), _renamed(seen.files, rename)
    return msgspec.structs.replace(seen, folders=folders, files=files)


def _without_repetitions(
    seen: Mapping[str, FolderState], known: Mapping[str, Collection[str]]
) -> dict[str, FolderState]:
    """Drop files that another source reads, and folders that are already listed."""
    read = {path for files in known.values() for path in files}
    listed: dict[str, int] = {}
    found = {}
    for digest, one in seen.items():
        own = known.get(digest, ())
        files = {path: last for path, last in one.files.items() if path in own or path not in read}
        folders = {path: at for path, at in one.folders.items() if listed.get(path) != at}
        listed |= folders
        found[digest] = msgspec.structs.replace(one, folders=folders, files=files)
    return found


def _digest(source: Source) -> str:
    """A digest of a source's identity. With the same identity, its files have the same ids."""
    return hashlib.sha256(source.identity_as_json()).hexdigest()[:16]
