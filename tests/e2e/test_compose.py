"""The compose file: images are built, started, killed, scaled and upgraded.

These tests need a container engine and are skipped without one; see CONTRIBUTING.md.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.compose_stack import SERVICES, Stack, release, release_of, version_of
from tests.support.container_engine import NoEngineError, find_engine
from tests.support.container_images import NoImageError, images

# The commit from which the upgrade starts; by default it is this tree with another version.
PREVIOUS = os.environ.get("REPERTORY_TEST_PREVIOUS")

pytestmark = pytest.mark.timeout(3_600)  # the first build downloads the dependencies


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack with a catalogue of one skill and without containers."""
    try:
        engine = find_engine()
        found = images(engine)
    except (NoEngineError, NoImageError) as error:
        pytest.skip(str(error))
    with Stack(engine, found, tmp_path_factory.mktemp("stack")) as stack:
        stack.skill("bread", "Bake sourdough bread, from starter to loaf")
        yield stack


@pytest.fixture(scope="module")
def current(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The current release: this tree."""
    return release(tmp_path_factory.mktemp("release") / "current", "1.0.0")


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The previous release."""
    tree = tmp_path_factory.mktemp("release") / "previous"
    return release_of(tree, PREVIOUS) if PREVIOUS else release(tree, "0.9.0")


@pytest.fixture(scope="module")
def upgraded(empty: Stack, previous: Path, current: Path) -> Stack:
    """A stack that ran the previous release and now runs this one."""
    stack = empty
    stack.up(previous)
    stack.wait(lambda: stack.finds("how do I make a loaf", "project/bread"))
    assert version(stack) == version_of(previous)
    before = stack.stats()
    stack.key = stack.repertory("keys", "create", "ops", "--scope", "admin").splitlines()[0]
    stack.up(current)
    stack.wait(lambda: stack.finds("how do I make a loaf", "project/bread"))
    if not PREVIOUS:  # another release may have another embedding recipe
        assert stack.stats()["collection"] == before["collection"]
        assert stack.stats()["counters"]["texts"] == before["counters"]["texts"]
    return stack


def version(stack: Stack) -> str:
    """The version of the running server."""
    return str(stack.get("/openapi.json")[1]["info"]["version"])


def test_an_upgrade_keeps_index_and_keys(upgraded: Stack, current: Path) -> None:
    """After `up --build` the new release answers from the volumes of the previous one."""
    assert version(upgraded) == version_of(current) == "1.0.0"
    assert upgraded.get("/stats", key="")[0] == 401
    assert upgraded.get("/stats")[0] == 200


def test_a_save_is_found(upgraded: Stack) -> None:
    """A skill saved into the mounted catalogue is found by its meaning."""
    upgraded.skill("keys", "Rotate API keys without downtime")
    upgraded.wait(lambda: upgraded.finds("replace our API keys with no outage", "project/keys"))


@pytest.mark.parametrize("service", SERVICES)
def test_a_killed_container_heals(upgraded: Stack, service: str) -> None:
    """A killed container restarts, nothing is lost, and the next save is found."""
    container, *_ = upgraded.containers(service)
    upgraded.crash(container)
    upgraded.skill(f"after-{service}", f"Written when the {service} container was killed")
    upgraded.wait(lambda: upgraded.finds(f"after-{service}", f"project/after-{service}"))
    upgraded.wait(lambda: upgraded.finds("how do I make a loaf", "project/bread"))
    upgraded.wait(lambda: upgraded.is_healthy(container))
    assert container in upgraded.containers(service)


def test_replicas_answer_alike(upgraded: Stack, current: Path) -> None:
    """Each query container finds the next save, also after one of them and a worker crash."""
    if upgraded.most_replicas < 3:
        pytest.skip("Podman publishes no range of ports.")
    upgraded.up(current, query=3, worker=2)
    assert len(set(upgraded.ports())) == 3
    upgraded.skill("plants", "Water the plants on the roof")
    upgraded.wait(lambda: upgraded.finds("the garden plants are dry", "project/plants"))
    upgraded.wait(lambda: len({one["worker"] for one in upgraded.stats()["workers"]}) >= 2)
    upgraded.crash(upgraded.containers("query")[-1])
    upgraded.crash(upgraded.containers("worker")[-1])
    upgraded.skill("plants", "Repair a bicycle tyre")
    upgraded.wait(lambda: upgraded.finds("fix a flat bicycle tyre", "project/plants"))


def test_keys_apply_to_every_replica(upgraded: Stack, current: Path) -> None:
    """A new key is valid on all replicas at once, and a revoked key on none."""
    upgraded.up(current, query=min(2, upgraded.most_replicas))
    created = upgraded.repertory("keys", "create", "agents").splitlines()[0]

    def statuses(path: str, key: str) -> set[int]:
        return {upgraded.get(path, port, key)[0] for port in upgraded.ports()}

    assert statuses("/search?q=bread", created) == {200}
    assert statuses("/search?q=bread", "") == {401}
    assert statuses("/stats", created) == {200}
    upgraded.repertory("keys", "revoke", "agents")
    assert statuses("/search?q=bread", created) == {401}
