"""Fetches the files of one commit of a git repository, without its history and without a checkout.

Each fetch uses a new, temporary repository, so nothing of a hostile one remains, and rewritten
branches need no special handling. The files are read from git's objects and written like those of
an archive, so links, submodules, filters and hooks have no effect.
"""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import quote

import msgspec
from typing_extensions import override

from repertory.errors import SourceError
from repertory.sources.fetched.fetcher import Fetched, Fetcher, State
from repertory.sources.fetched.http import moved
from repertory.sources.fetched.servers import declared_in
from repertory.sources.fetched.urls import shown
from repertory.sources.fetched.writing import MAX_ENTRIES, MAX_FILE_SIZE, Writer
from repertory.sources.git.program import Git
from repertory.sources.git.url import is_commit
from repertory.text import one_line

_REFS, _AGENT = "/info/refs?service=git-upload-pack", "git/2"  # git's first request
_OWN_REF = "refs/repertory/fetched"
_FILES = {b"100644", b"100664", b"100755"}
_LINK, _SUBMODULE = b"120000", b"160000"


class _File(msgspec.Struct, frozen=True):
    """A regular file of a commit."""

    place: str
    blob: str
    is_executable: bool


class GitFetcher(Fetcher):
    """Fetches a folder of a repository.

    Args:
        url: The repository, see ``git.url.checked``.
        protocol: The only protocol that git may use.
        ref: A branch, a tag or a whole commit id; empty for the default branch.
        folder: The folder to take; empty for all.
    """

    def __init__(self, url: str, protocol: str, ref: str, folder: str) -> None:
        self.location = shown(url) + (f" ({ref})" if ref else "")
        self.cancelled = Event()
        self.url, self.protocol, self.ref, self.folder = url, protocol, ref, folder

    @override
    def key(self) -> Mapping[str, Any]:
        return {"url": self.url, "ref": self.ref, "folder": self.folder}

    @override
    def fetch(self, into: Path, last: State, *, may_ask: bool) -> Fetched | None:
        if self.ref and last.revision == self._revision_of(self.ref):
            return None  # a commit never changes
        with tempfile.TemporaryDirectory(dir=into.parent, prefix=".git-", suffix=".tmp") as place:
            git = Git(
                Path(place),
                self._moved(),
                shown(self.url),
                self.protocol,
                self.cancelled.is_set,
                may_ask=may_ask,
            )
            name, commit = self._named(git)
            if self._revision_of(commit) == last.revision:
                return None
            commit = self._get(git, name, commit)
            writer = Writer(into, shown(self.url))
            self._write(git, writer)
        return Fetched(
            revision=self._revision_of(commit),
            notes=writer.notes,
            declared=declared_in(into, "repository"),
        )

    def _revision_of(self, commit: str) -> str:
        """The revision of a commit's folder: a marketplace may name another folder of it."""
        return f"{commit}:{quote(self.folder)}" if self.folder else commit

    def _moved(self) -> str:
        """The URL after redirects, which are followed here because git does not check them."""
        if self.protocol not in ("https", "http"):
            return self.url
        return moved(self.url.rstrip("/"), _REFS, _AGENT, self.cancelled.is_set)

    def _named(self, git: Git) -> tuple[str, str]:
        """The full name of the ref, and the object that it points to."""
        if is_commit(self.ref):
            return self.ref, self.ref
        wanted = self.ref or "HEAD"
        output = git.call("ls-remote", "--quiet", "--", "origin", wanted, f"{wanted}^{{}}")
        refs = {}
        for line in output.read_text("utf-8", errors="replace").splitlines():
            revision, _, name = line.partition("\t")
            refs[name] = revision
        for name in (wanted, f"refs/tags/{wanted}", f"refs/heads/{wanted}"):
            if name in refs:
                return name, refs.get(f"{name}^{{}}", refs[name])
        what = f"no branch or tag {self.ref!r}" if self.ref else "no commit"
        raise SourceError(f"{shown(self.url)} has {what}; check --ref.")

    def _get(self, git: Git, name: str, revision: str) -> str:
        """Fetch one commit and return its id; without large files if the server supports that."""
        hashes = "sha256" if len(revision) > len("0" * 40) else "sha1"
        git.call("init", "--quiet", "--bare", "--template=", f"--object-format={hashes}", ".")
        configuration = (git.folder / "config").read_bytes()
        options = ("--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules")
        limit = f"--filter=blob:limit={MAX_FILE_SIZE + 1}"
        git.call("fetch", *options, limit, "--", "origin", f"+{name}:{_OWN_REF}")
        # Without this, git would fetch the files left out one by one.
        (git.folder / "config").write_bytes(configuration)
        return git.call("rev-parse", f"{_OWN_REF}^{{commit}}").read_text("ascii").strip()

    def _write(self, git: Git, writer: Writer) -> None:
        tree = f"{_OWN_REF}^{{commit}}:{self.folder}"
        try:
            listed = git.call("ls-tree", "-r", "-z", tree)
        except SourceError as error:
            if not self.folder:
                raise
            raise SourceError(
                f"{self.location} has no folder {one_line(self.folder)!r}; check --folder."
            ) from error
        files = list(_files(listed, writer))
        blobs = git.folder / "blobs"
        blobs.write_text("".join(f"{file.blob}\n" for file in files))
        sizes = [
            _size(line)
            for line in git.call("cat-file", "--batch-check", given=blobs).read_text().splitlines()
        ]
        taken = [
            (file, size)
            for file, size in zip(files, sizes, strict=True)
            if writer.takes(file.place, size)
        ]
        blobs.write_text("".join(f"{file.blob}\n" for file, _ in taken))
        with git.call("cat-file", "--batch", given=blobs).open("rb") as content:
            for file, size in taken:
                content.readline()
                writer.write(file.place, [content.read(size)], is_executable=file.is_executable)
                content.read(1)


def _files(listed: Path, writer: Writer) -> Iterator[_File]:
    """The regular files that ``ls-tree`` lists; other entries are counted as left out."""
    entries = listed.read_bytes().split(b"\0")
    if len(entries) > MAX_ENTRIES:
        raise SourceError(f"The repository lists more than {MAX_ENTRIES:,} files; name a --folder.")
    for entry in filter(None, entries):
        meta, _, name = entry.partition(b"\t")
        mode, _, blob = meta.split(b" ")
        if mode in _FILES:
            place = name.decode("utf-8", errors="replace")
            yield _File(place, blob.decode(), mode == b"100755")
        else:
            kinds = {_LINK: "links", _SUBMODULE: "submodules"}
            writer.leave_out(kinds.get(mode, "other entries"))


def _size(line: str) -> int:
    """The size in a line of ``cat-file``. A missing file was too large to be sent."""
    _, _, rest = line.partition(" ")
    size = rest.rpartition(" ")[2]
    return int(size) if size.isdecimal() else MAX_FILE_SIZE + 1
