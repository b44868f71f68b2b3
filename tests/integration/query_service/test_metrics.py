"""Metrics for alerts and dashboards: searches by caller, searches without results, and saves."""

from pathlib import Path

from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from repertory.coordination.lease import Holder
from repertory.keys import Keys, Scope
from repertory.stats import Watch
from repertory_query.records.metrics import Metrics
from tests.support.builders import write_skill
from tests.support.query_service import RunningService, bearer, metrics

CALLER = "repertory_caller_searches_total"


def test_searches_are_counted_by_key_over_every_face(
    server: RunningService, tmp_path: Path
) -> None:
    """Counts per caller are only for the scope admin; a reader sees the totals."""
    file = tmp_path / "keys.json"
    keys = Keys(file)
    agent = bearer(keys.create("agent", Scope.READ))
    boss = bearer(keys.create("boss", Scope.ADMIN))
    with server.client(keys=str(file)) as client:
        before = metrics(client, **boss)
        for _ in range(2):  # the second is cached
            client.get("/search", params={"q": "zzqxv wvut", "threshold": 1}, headers=agent)
        client.post("/v1/search", json={"queries": [{"q": "rotate"}]}, headers=agent)
        arguments = {"name": "search", "arguments": {"query": "rotate keys"}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": arguments}
        assert client.post("/mcp", json=message, headers=agent).status_code == 200
        for address in ("/search?q=rotate", "/v1/search?q=rotate&format=markdown"):
            client.get(address, headers=boss)
        after, seen = metrics(client, **boss), metrics(client, **agent)
    assert after[CALLER + '{"caller": "key:agent"}'] == 4
    assert after[CALLER + '{"caller": "key:boss"}'] == 2
    for name, more in (
        ("repertory_search_duration_seconds_count", 6),
        ("repertory_empty_searches_total", 2),
    ):
        assert after[name] - before.get(name, 0.0) == more
        assert seen[name] == after[name]
    assert not [name for name in seen if name.startswith(CALLER)]


def test_saves_are_timed(server: RunningService) -> None:
    """Items of the first index do not count as saves; an item that is saved later does."""
    assert metrics(server.client())["repertory_save_duration_seconds_count"] == 0
    write_skill(server.project, "timed", "A skill that was saved later.")
    server.scan()
    found = metrics(server.client())
    assert found["repertory_save_duration_seconds_count"] == 1
    assert found['repertory_save_duration_seconds_bucket{"le": "+Inf"}'] == 1
    assert found["repertory_save_duration_seconds_sum"] > 0
    assert found["repertory_save_waiting_seconds"] == 0


def test_the_lease_of_a_team_is_reported(server: RunningService) -> None:
    """The metrics show whether a watch service holds the lease, and how many wait for it."""

    def lease(watch: Watch, *, is_team: bool = True) -> dict[str, float]:
        stats = replace(server.service.stats(), watch=watch)
        counts = server.service.recent.counts()
        text, _ = Metrics(is_team=is_team).text("", stats, {}, counts, {})
        names = {"repertory_lease_held", "repertory_watch_waiting"}
        families = text_string_to_metric_families(text.decode())
        return {one.name: one.samples[0].value for one in families if one.name in names}

    holder = Holder(host="here", process=1, directory="/catalogue")
    held = lease(Watch(at=1.0, holder=holder, waiting=[holder, holder]))
    assert held == {"repertory_lease_held": 1, "repertory_watch_waiting": 2}
    assert lease(Watch(at=1.0))["repertory_lease_held"] == 0
    assert lease(Watch(at=1.0), is_team=False) == {}
