"""Archives as sources, fetched from a web server or read from a local file."""

import errno
import gzip
import hashlib
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest

from repertory.errors import ConfigurationError, SourceError
from repertory.sources.archive import fetcher
from repertory.sources.fetched import http, urls
from tests.support.elsewhere import (
    Web,
    built,
    endless_headers,
    ids,
    refreshed,
    resolve_names,
    skills,
    tarred,
    zipped,
)


@pytest.fixture
def web() -> Web:
    """A web server with an archive that contains one skill."""
    found = Web()
    found.files["/team.zip"] = zipped(skills("pdf"))
    return found


@pytest.fixture
def url(web: Web) -> Iterator[str]:
    """The URL of the web server."""
    with web.published() as url:
        yield url


def test_a_changed_archive_replaces_the_fetched_one(web: Web, url: str, tmp_path: Path) -> None:
    """An unchanged archive keeps its version. A changed one may have another format."""
    sources = built(tmp_path, type="archive", url=f"{url}/team.zip")
    assert refreshed(sources) == {"acme/pdf"}
    version = sources[0].content.version  # type: ignore[attr-defined]
    assert refreshed(sources) == {"acme/pdf"}
    assert sources[0].content.version == version  # type: ignore[attr-defined]
    web.files["/team.zip"] = tarred(skills("pdf", "docx"))
    assert refreshed(sources) == {"acme/pdf", "acme/docx"}


def test_another_folder_of_an_archive_is_another_source(
    web: Web, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources that differ in `folder` differ in identity; the data directory may be relative."""
    web.files["/team.zip"] = zipped({**skills("pdf", folder="a"), **skills("docx", folder="b")})
    [one], [other], [whole] = (
        built(tmp_path, type="archive", url=f"{url}/team.zip", **folder)
        for folder in ({"folder": "a"}, {"folder": "b"}, {})
    )
    assert len({str(source.identity()) for source in (one, other, whole)}) == 3
    assert whole.identity()["path"] == whole.content.folder.name  # type: ignore[attr-defined]
    monkeypatch.chdir(tmp_path)
    [relative] = built(Path(), type="archive", url=f"{url}/team.zip", folder="a")
    assert relative.identity() == one.identity()


def test_an_archive_with_a_fetch_time_in_the_future_is_fetched_again(
    web: Web, url: str, tmp_path: Path
) -> None:
    """After the clock was set back, a fetch time in the future does not prevent the next fetch."""
    sources = built(tmp_path, type="archive", url=f"{url}/team.zip")
    assert refreshed(sources) == {"acme/pdf"}
    content = sources[0].content  # type: ignore[attr-defined]
    later = time.time() + 86_400
    state = msgspec.structs.replace(content.state(), tried_at=later, checked_at=later)
    (content.folder / "state.json").write_bytes(msgspec.json.encode(state))
    web.files["/team.zip"] = tarred(skills("pdf", "docx"))
    assert refreshed(sources) == {"acme/pdf", "acme/docx"}
    assert content.refresh(max_age_s=3_600) is False


def test_sources_share_a_fetcher_until_the_last_of_them_ends(url: str, tmp_path: Path) -> None:
    """Two sources share one fetched archive; only the end of the last cancels the fetcher."""
    one, other = built(
        tmp_path, type="archive", url=f"{url}/team.zip", reads=["skills", "documents"]
    )
    ends = [source.watch(lambda: None, 60.0) for source in (one, other)]
    fetcher = one.content.fetcher  # type: ignore[attr-defined]
    for end, is_over in zip(ends, (False, True), strict=True):
        assert end is not None
        end()
        assert fetcher.cancelled.is_set() is is_over


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({**skills("pdf"), "README.md": "x"}, {"acme/skills/pdf"}),
        (skills("pdf", folder="repository-main/skills"), {"acme/skills/pdf"}),
        (skills("pdf", folder="."), {"acme/pdf"}),
        ({"SKILL.md": skills("acme")["skills/acme/SKILL.md"]}, {"acme/acme"}),
    ],
)
def test_the_only_top_folder_of_an_archive_is_not_part_of_ids(
    web: Web, url: str, tmp_path: Path, files: dict[str, str], expected: set[str]
) -> None:
    """The folder is omitted from ids unless it is itself the skill."""
    web.files["/a.tgz"] = tarred({place.removeprefix("./"): text for place, text in files.items()})
    assert refreshed(built(tmp_path, type="archive", url=f"{url}/a.tgz")) == expected


def test_only_the_pinned_archive_is_accepted(web: Web, url: str, tmp_path: Path) -> None:
    """Once fetched, it is not requested again. The refusal of other content names its hash."""
    digest = hashlib.sha256(web.files["/team.zip"]).hexdigest()
    entry = {"type": "archive", "url": f"{url}/team.zip"}
    sources = built(tmp_path, **entry, sha256=digest)
    assert refreshed(sources) == {"acme/pdf"}
    web.requests.clear()
    assert refreshed(sources) == {"acme/pdf"}
    assert web.requests == []
    [other] = built(tmp_path, **entry, sha256="0" * 64)
    with pytest.raises(SourceError, match=f"SHA-256 {digest}"):
        other.refresh()


def test_a_server_that_is_down_does_not_remove_the_fetched_archive(
    web: Web, url: str, tmp_path: Path
) -> None:
    """The error and the source's location name the server without the secrets in its URL."""
    address = url.replace("://", "://ada:pa55word@")
    sources = built(tmp_path, type="archive", url=f"{address}/team.zip?token=s3cret")
    refreshed(sources)
    assert web.logins[-1].startswith("Basic ")
    web.is_down = True
    with pytest.raises(SourceError, match=rf"{url}/team\.zip answers 503"):
        refreshed(sources)
    assert ids(sources) == {"acme/pdf"}
    [source] = sources
    shown = f"{source.scan().stale} {source.location} {source.identity()}"
    assert "answers 503" in shown
    assert not {"pa55word", "s3cret"} & set(shown.replace("=", " ").replace(":", " ").split())
    web.is_down = False
    refreshed(sources)
    assert not source.scan().stale


def test_redirects_are_followed_a_few_times(web: Web, url: str, tmp_path: Path) -> None:
    """Their number is limited, they stay on HTTP, and they do not receive the user's password."""
    web.redirects = {"/latest": f"{url}/next", "/next": "/team.zip", "/loop": "/loop"}
    address = url.replace("://", "://ada:pa55word@")
    assert refreshed(built(tmp_path, type="archive", url=f"{address}/latest")) == {"acme/pdf"}
    assert [bool(one) for one in web.logins] == [True, False, False]
    with pytest.raises(SourceError, match="redirected more than"):
        refreshed(built(tmp_path, type="archive", url=f"{url}/loop"))
    for target, why in (
        ("file:///etc/passwd", "not over HTTP"),
        ("ftp://127.0.0.1/x", "not over HTTP"),
        ("http://[", "leads to an invalid URL"),
        ("http://127.0.0.1:99999/", "cannot be reached"),
        ("http://127.0.0.1:a/", "cannot be reached"),
        (f"http://{'a' * 64}.example/", "cannot be reached"),
        ("http://a..example/", "cannot be reached"),
    ):
        web.redirects["/away"] = target
        with pytest.raises(SourceError, match=why):
            refreshed(built(tmp_path, type="archive", url=f"{url}/away"))


def test_a_public_server_cannot_redirect_into_the_private_network(
    web: Web, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configured URL may be private; a redirect from a public server may not lead to one."""
    web.redirects = {"/start": url.replace("127.0.0.1", "localhost") + "/team.zip"}
    resolve_names(monkeypatch, private="localhost")
    with pytest.raises(SourceError, match="on a private network"):
        refreshed(built(tmp_path, type="archive", url=f"{url}/start"))
    assert web.requests == ["/start"]


def test_a_server_with_public_and_private_addresses_cannot_redirect_to_private_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The owner of a public server also chooses the addresses of its name."""
    names = {"both.example": ["93.184.216.34", "10.0.0.1"], "inside.example": ["10.0.0.2"]}

    def look_up(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        return [(0, 0, 0, "", (address, 0)) for address in names[host]]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(SourceError, match="on a private network"):
        urls.check_step("https://inside.example/a", "https://both.example/a")
    with pytest.raises(SourceError, match="on a private network"):
        urls.check_step("https://both.example/b", "https://both.example/a")
    urls.check_step("https://both.example/a", "https://inside.example/a")


def test_a_redirect_to_a_name_whose_address_changes_is_refused(
    web: Web, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The redirect's name is public when it is checked, and private when it is connected to."""
    web.redirects = {"/start": url.replace("127.0.0.1", "localhost") + "/team.zip"}
    resolve_names(monkeypatch, private="")
    with pytest.raises(SourceError, match="on a private network"):
        refreshed(built(tmp_path, type="archive", url=f"{url}/start"))
    assert web.requests == ["/start"]


def test_a_connection_that_is_reset_at_once_is_an_error(
    web: Web, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system then no longer knows the address that it was connected to."""
    gone = Mock(side_effect=OSError(errno.ENOTCONN, "Transport endpoint is not connected"))
    monkeypatch.setattr(http, "address_in", gone)
    with pytest.raises(SourceError, match="cannot be reached: OSError"):
        refreshed(built(tmp_path, type="archive", url=f"{url}/team.zip"))
    assert web.requests == []


def test_a_redirect_stays_encrypted() -> None:
    """A redirect from HTTPS to HTTP is refused."""
    following = vars(http)["_next"]
    assert following("https://93.184.216.34/a", "/b") == "https://93.184.216.34/b"
    with pytest.raises(SourceError, match="which is not encrypted"):
        following("https://93.184.216.34/a", "http://93.184.216.34/a")


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "10.1.2.3", "100.64.0.1", "169.254.169.254", "224.0.0.1"),
        *("::1", "fd00::1", "fec0::1", "ff02::1"),
        *("::ffff:10.0.0.1", "::ffff:100.64.0.1", "64:ff9b::a00:1", "2002:a00:1::"),
    ],
)
def test_private_addresses_are_recognised(host: str) -> None:
    """They are loopback addresses, private networks, and the metadata service of clouds.

    They may be inside IPv6 addresses, in several ways.
    """
    assert urls.is_private(host)
    assert not urls.is_public(host)
    assert urls.is_public("93.184.216.34")
    assert not urls.is_private("93.184.216.34")
    assert urls.host_of("git@10.1.2.3:team/skills") == "10.1.2.3"
    assert urls.is_private(urls.host_of("/srv/skills"))


def test_a_large_archive_is_not_fetched(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive above the size limit is refused."""
    monkeypatch.setattr(fetcher, "MAX_ARCHIVE_SIZE", 100)
    with pytest.raises(SourceError, match="more than 100 bytes"):
        refreshed(built(tmp_path, type="archive", url=f"{url}/team.zip"))


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "Zstd"])
def test_a_doubly_compressed_answer_is_refused(
    web: Web, url: str, encoding: str, tmp_path: Path
) -> None:
    """Three kilobytes, compressed twice, took gigabytes of memory before their size was known."""
    web.files["/team.zip"] = gzip.compress(gzip.compress(bytes(1_000_000)))
    web.encoding = encoding
    [source] = built(tmp_path, type="archive", url=f"{url}/team.zip")
    with pytest.raises(SourceError, match="is compressed in an unsupported encoding"):
        source.refresh()


def test_a_server_may_compress_an_answer_once(
    web: Web, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some servers do so unasked; the size limit applies to the decompressed answer."""
    web.files["/team.zip"], web.encoding = gzip.compress(web.files["/team.zip"]), "gzip"
    assert refreshed(built(tmp_path, type="archive", url=f"{url}/team.zip")) == {"acme/pdf"}
    web.files["/zeros.zip"] = gzip.compress(bytes(100_000))
    monkeypatch.setattr("repertory.sources.archive.fetcher.MAX_ARCHIVE_SIZE", 50_000)
    with pytest.raises(SourceError, match="has more than 50,000 bytes"):
        refreshed(built(tmp_path, type="archive", url=f"{url}/zeros.zip"))


def test_a_slow_fetch_times_out(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit covers the whole fetch."""
    monkeypatch.setattr(http, "TOTAL_TIMEOUT_S", -1.0)
    with pytest.raises(SourceError, match="was not complete"):
        refreshed(built(tmp_path, type="archive", url=f"{url}/team.zip"))


def test_endless_headers_time_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit covers headers as well."""
    monkeypatch.setattr(http, "TOTAL_TIMEOUT_S", 0.5)
    with endless_headers(threading.Event()) as url:
        sources = built(tmp_path, type="archive", url=f"{url}/team.zip")
        with pytest.raises(SourceError, match="was not complete after"):
            refreshed(sources)


@pytest.mark.parametrize(
    ("kind", "place"), [("archive", "/a.zip"), ("marketplace", "/marketplace.json")]
)
def test_a_fetch_can_be_interrupted_during_endless_headers(
    tmp_path: Path, kind: str, place: str
) -> None:
    """This applies to archives and to marketplaces."""
    began = threading.Event()
    with endless_headers(began) as url:
        sources = built(tmp_path, type=kind, url=f"{url}{place}")
        with ThreadPoolExecutor(1) as pool:
            fetch = pool.submit(sources[0].refresh)
            assert began.wait(60)
            sources[0].cancel()
            with pytest.raises(SourceError, match="was interrupted"):
                fetch.result()


def test_a_local_archive_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """If the file is missing, the error says so, and its last items stay."""
    file = tmp_path / "team.skill"
    file.write_bytes(zipped(skills("pdf", folder=".")))
    sources = built(tmp_path, type="archive", path="team.skill")
    assert refreshed(sources) == {"acme/pdf"}
    file.write_bytes(zipped(skills("pdf", "docx")))
    assert refreshed(sources) == {"acme/pdf", "acme/docx"}
    file.unlink()
    with pytest.raises(SourceError, match="cannot be read"):
        refreshed(sources)
    assert ids(sources) == {"acme/pdf", "acme/docx"}


@pytest.mark.parametrize(
    "entry",
    [
        {"url": "ftp://h/a.zip"},
        {"url": 7},
        {},
        {"url": "https://h/a.zip", "sha256": "short"},
        {"url": "https://h/a.zip", "folder": "../up"},
        {"url": "https://h/a.zip", "refresh": 1},
        {"url": "https://h/a.zip", "unknown": 1},
    ],
)
def test_an_invalid_entry_is_refused(tmp_path: Path, entry: dict[str, object]) -> None:
    """The configuration error comes before anything is fetched."""
    with pytest.raises(ConfigurationError):
        built(tmp_path, type="archive", **entry)
