"""API addresses work with and without /v1, and functions by their two names."""

import pytest
from starlette.testclient import TestClient

from repertory.keys import Keys, Scope
from repertory.wire import V1
from tests.support.query_service import RunningService, bearer, metrics, problem

READS = (
    "/search?q=rotate&threshold=0",
    "/explain?q=rotate&item=key-rotation",
    "/items?kind=skill",
    "/items/project/key-rotation",
    "/functions",
    "/runtime/tools.ts",
    "/queue",
)
WRITES: tuple[tuple[str, object], ...] = (
    ("/rebuild", None),
    ("/queue/retry", {"ids": []}),
    ("/tools/unknown__tool", {}),
    ("/functions/Vector.VectorUpdate", {"filepath": "x"}),
    ("/functions/Vector_VectorUpdate", {"filepath": "x"}),
)


@pytest.mark.parametrize("target", READS)
def test_the_api_answers_with_and_without_its_version(client: TestClient, target: str) -> None:
    """Both addresses give identical answers."""
    with_version, without = client.get(V1 + target), client.get(target)

    assert with_version.status_code == without.status_code == 200
    assert with_version.content == without.content


def test_statistics_and_batches_have_both_addresses(client: TestClient) -> None:
    """Statistics and the body of a batch are accepted at both addresses."""
    assert client.get("/v1/stats").json()["items"] == client.get("/stats").json()["items"]
    found = [client.post(one, json={"queries": [{"q": "x"}]}) for one in ("/search", "/v1/search")]
    assert found[0].json() == found[1].json()


def test_the_openapi_document_describes_only_versioned_addresses(client: TestClient) -> None:
    """Probes and metrics have no version."""
    paths = set(client.get("/openapi.json").json()["paths"])
    without = {path for path in paths if not path.startswith("/v1/")}

    assert without == {"/healthz", "/readyz", "/metrics"}
    assert {"/v1/search", "/v1/tools/{tool_id}", "/v1/functions/Vector_SearchSkills"} <= paths
    assert "/v1/functions/Vector.SearchSkills" not in paths  # each function is described once


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/", "/mcp", "/openapi.json"])
def test_addresses_outside_the_api_have_no_version(client: TestClient, path: str) -> None:
    """Probes, metrics, pages, MCP and the OpenAPI document are not found below /v1."""
    assert problem(client.get(V1 + path), 404)


def test_both_addresses_are_measured_as_one(client: TestClient) -> None:
    """Metrics count requests to both addresses under one route."""
    for target in ("/queue", "/v1/queue", "/v1/queue"):
        client.get(target)
    counts = metrics(client)

    name = 'repertory_request_duration_seconds_count{"method": "GET", "route": "/queue", '
    assert counts[name + '"status": "200"}'] == 3


@pytest.mark.parametrize(("target", "body"), WRITES)
@pytest.mark.parametrize("version", ["", V1])
def test_keys_and_scopes_apply_to_both_addresses(
    server: RunningService,
    tmp_path_factory: pytest.TempPathFactory,
    version: str,
    target: str,
    body: object,
) -> None:
    """Without a key every request is refused; the scope read cannot change anything."""
    keys = Keys(tmp_path_factory.mktemp("keys") / "keys.json")
    token = keys.create("reader", Scope.READ)
    client = server.client(keys=str(keys.path), allow_calls=True)
    headers = bearer(token)

    assert problem(client.get(version + "/search?q=x"), 401)
    assert problem(client.post(version + target, json=body), 401)
    assert problem(client.post(version + target, json=body, headers=headers), 403)
    assert client.get(version + "/search?q=x", headers=headers).status_code == 200


def test_functions_are_listed_by_names_that_every_vendor_accepts(client: TestClient) -> None:
    """Each function can be called by this name and by the name in its contract."""
    names = [one["function"]["name"] for one in client.get("/v1/functions").json()]
    found = [
        client.post(f"/v1/functions/{name}", json={"query": "rotate keys"}).json()
        for name in ("skill.discovery.search", "skill_discovery_search")
    ]

    assert names == [
        "Vector_SearchSkills",
        "Vector_VectorUpdate",
        "skill_discovery_search",
        "search",
    ]
    assert found[0] == found[1]
    assert found[0]["results"][0]["skill_id"] == "project/key-rotation"
