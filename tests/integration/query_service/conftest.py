"""Fixtures of the query service: one server for all tests of a file."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.support.builders import write_shop
from tests.support.openid_provider import OpenIdProvider, openid_provider
from tests.support.query_service import RunningService
from tests.support.signing_in import signing_in


@pytest.fixture(scope="module", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty home directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server with three skills and a document."""
    project = tmp_path_factory.mktemp("served") / "project"
    write_shop(project)
    with RunningService(project) as running:
        running.scan()
        yield running


@pytest.fixture
def client(server: RunningService) -> TestClient:
    """A client on the same machine; the server has no keys."""
    return server.client()


@pytest.fixture(scope="module")
def running_provider() -> Iterator[OpenIdProvider]:
    """An OpenID provider for all tests of a file."""
    with openid_provider() as found:
        yield found


@pytest.fixture
def provider(running_provider: OpenIdProvider) -> Iterator[OpenIdProvider]:
    """The OpenID provider; its misbehaviour is reset after each test."""
    yield running_provider
    running_provider.be_honest()


@pytest.fixture(scope="module")
def url(server: RunningService, running_provider: OpenIdProvider) -> Iterator[str]:
    """The URL of a server that signs people in."""
    with signing_in(server, running_provider) as found:
        yield found
