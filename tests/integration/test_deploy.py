"""The files under ``deploy/`` match each other and the code."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
import yaml

from repertory.coordination.redis_server import RedisServer
from repertory.embedding.models import DEFAULT
from repertory.index.qdrant_connection import NEWEST_SERVER, OLDEST_SERVER
from repertory.values import SETTINGS
from tests.support.exported_metrics import exported
from tests.support.http_stub import serving
from tests.support.ports import free_port
from tests.support.qdrant import IMAGE
from tests.support.redis_server import redis_binary
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")
# Docker's own tag for a list that replaces another instead of extending it.
yaml.SafeLoader.add_constructor(
    "!override", lambda loader, node: loader.construct_sequence(cast("yaml.SequenceNode", node))
)
CALLS = yaml.safe_load((DEPLOY / "calls.yml").read_text("utf-8"))["services"]
OURS = ("watch", "worker", "worker-gpu", "query")
PLACEHOLDER = re.compile(r"(?<!\$)\$\{(\w+)(?::-([^}]*))?\}")

each_service = pytest.mark.parametrize("service", SERVICES.values(), ids=list(SERVICES))
each_of_ours = pytest.mark.parametrize("service", [SERVICES[name] for name in OURS], ids=OURS)


def substituted(value: str) -> str:
    """A value in which variables are replaced with their defaults."""
    return PLACEHOLDER.sub(lambda match: match[2] or "", value)


@pytest.mark.parametrize("profiles", [[], ["gpu"], ["monitoring"], ["gpu", "monitoring"]])
def test_docker_accepts_the_compose_file(profiles: list[str]) -> None:
    """Docker reads the file with and without each profile."""
    if (
        not shutil.which("docker")
        or subprocess.run(
            ["docker", "compose", "version"], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("There is no Docker client with compose here.")
    asked = [word for profile in profiles for word in ("--profile", profile)]
    # Without the .env of the user who runs the tests.
    command = ["docker", "compose", "--env-file", os.devnull, *asked, "config", "--services"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = {
        name
        for name, service in SERVICES.items()
        if set(service.get("profiles", profiles)) <= set(profiles)
    }
    assert set(done.stdout.split()) == expected


def test_the_team_server_needs_no_profile() -> None:
    """Only the GPU and the monitoring need a profile."""
    asked_for = {
        name: service["profiles"] for name, service in SERVICES.items() if "profiles" in service
    }
    assert asked_for == {
        "worker-gpu": ["gpu"],
        "prometheus": ["monitoring"],
        "grafana": ["monitoring"],
    }
    assert {"qdrant", "redis", "watch", "worker", "query"} <= set(SERVICES)


@each_service
def test_a_service_is_hardened(service: dict[str, Any]) -> None:
    """No service runs as root, gains privileges, or writes to its image."""
    user, _, _ = service["user"].partition(":")
    assert int(user) > 0
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "cap_add" not in service
    assert "privileged" not in service


@each_service
def test_a_service_restarts_and_has_limits(service: dict[str, Any]) -> None:
    """Each has a health check, a restart policy, and limits of memory and processes."""
    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}
    limits = service["deploy"]["resources"]["limits"]
    assert limits["memory"]
    assert limits["pids"]
    # Docker refuses a limit above the number of processors of the machine.
    assert "cpus" not in limits


@each_service
def test_an_image_is_pinned_or_built_here(service: dict[str, Any]) -> None:
    """A foreign image has an exact version."""
    if "build" in service:
        target = service["build"]["target"]
        assert service["image"] == f"repertory-{target}"
        assert re.search(rf"^FROM \w\S* AS {target}$", DOCKERFILE, re.MULTILINE)
    else:
        assert re.search(r":v?\d+\.\d+\.\d+(-\w+)?$", substituted(service["image"]))


def test_the_images_of_the_stores_can_be_replaced() -> None:
    """A variable names each; all other images are built here or only for monitoring."""
    named = {
        name: PLACEHOLDER.fullmatch(service["image"])
        for name, service in SERVICES.items()
        if "build" not in service and "profiles" not in service
    }
    assert {name: found and found[1] for name, found in named.items()} == {
        "qdrant": "QDRANT_IMAGE",
        "redis": "REDIS_IMAGE",
    }


def is_open(address: str, port: int) -> bool:
    """Whether a program listens on this port."""
    with socket.socket() as connection:
        return connection.connect_ex((address, port)) == 0


def own_address() -> str:
    """A non-loopback IPv4 address of this machine; empty if it has none."""
    for family in psutil.net_if_addrs().values():
        for one in family:
            if one.family is socket.AF_INET and not one.address.startswith("127."):
                return one.address
    return ""


@pytest.mark.parametrize("password", ["", "secret"])
def test_redis_accepts_other_hosts_with_and_without_a_password(
    password: str, tmp_path: Path
) -> None:
    """By default, a Redis without a password refuses connections from other addresses."""
    address = own_address()
    if not address:
        pytest.skip("This machine has no address but its own.")
    commands = (
        one.replace("${REDIS_PASSWORD:-}", password) for one in SERVICES["redis"]["command"]
    )
    _, *options = map(substituted, commands)
    port = free_port()
    command = [redis_binary(), *options, "--port", str(port), "--dir", str(tmp_path)]
    url = PLACEHOLDER.sub(password, SERVICES["watch"]["environment"]["REPERTORY_REDIS_URL"])
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        until(lambda: is_open(address, port), server)
        client = RedisServer(url.replace("@redis:6379", f"@{address}:{port}"))
        assert client.eviction_policy() == "noeviction"
    finally:
        server.kill()
        server.wait()


def test_the_qdrant_of_the_team_is_supported() -> None:
    """The documents name the same range of versions as the code."""
    image = substituted(SERVICES["qdrant"]["image"])
    major, minor = map(int, re.findall(r"\d+", image)[:2])
    assert OLDEST_SERVER <= (major, minor) <= NEWEST_SERVER
    assert image.startswith(IMAGE)
    supported = " to ".join(".".join(map(str, one)) for one in (OLDEST_SERVER, NEWEST_SERVER))
    assert f"Qdrant ({supported})" in (ROOT / "docs" / "server.md").read_text("utf-8")
    assert f"Qdrant {supported}" in (DEPLOY / ".env.example").read_text("utf-8")


def test_only_the_query_service_is_published() -> None:
    """Without a profile one port is open, and only on this machine."""
    published = {
        name: [substituted(port) for port in service["ports"]]
        for name, service in SERVICES.items()
        if "ports" in service and "profiles" not in service
    }
    assert published == {"query": ["127.0.0.1:7700:7700"]}
    assert substituted(SERVICES["grafana"]["ports"][0]).startswith("127.0.0.1:")


def test_only_our_services_reach_the_stores() -> None:
    """The network of Qdrant and Redis has no other members."""
    assert COMPOSE["networks"]["stores"]["internal"] is True
    assert SERVICES["qdrant"]["networks"] == SERVICES["redis"]["networks"] == ["stores"]
    assert {name for name, one in SERVICES.items() if "stores" in one["networks"]} == {
        "qdrant",
        "redis",
        *OURS,
    }


@each_service
def test_folders_of_the_host_are_mounted_read_only(service: dict[str, Any]) -> None:
    """Only named volumes are writable."""
    for volume in service.get("volumes", []):
        source, target, *mode = substituted(volume).split(":")
        if source in COMPOSE["volumes"]:
            assert not mode
        else:
            assert mode == ["ro"], target


def test_each_service_of_ours_reads_the_configuration() -> None:
    """Workers and the query service also read settings in its [search] section."""
    mounted = {
        name: volume.split(":")[1:]
        for name, service in SERVICES.items()
        for volume in map(substituted, service.get("volumes", []))
        if ":/catalogue" in volume
    }
    assert mounted == {name: ["/catalogue", "ro"] for name in OURS}
    assert "\nWORKDIR /catalogue\n" in DOCKERFILE
    for name in OURS:
        assert "REPERTORY_CONFIG" in SERVICES[name]["environment"]


def test_the_service_that_calls_tools_equals_the_watch_service() -> None:
    """It starts MCP servers in the same image, with the same secrets and configuration."""
    query, watch = CALLS["query"], SERVICES["watch"]
    assert query["build"]["target"] == watch["build"]["target"]
    assert query["env_file"] == watch["env_file"]
    assert query["tmpfs"] == watch["tmpfs"]
    for name in ("REPERTORY_MCP_CONFIG", "REPERTORY_MCP_TIMEOUT"):
        assert name in query["environment"]
        assert name in watch["environment"]
    assert query["environment"].keys() <= {setting.variable for setting in SETTINGS.values()} | {
        "REPERTORY_CONFIG",
        "REPERTORY_MCP_CONFIG",
    }


@each_of_ours
def test_every_variable_is_a_setting(service: dict[str, Any]) -> None:
    """No variable is misspelt or outdated."""
    known = {setting.variable for setting in SETTINGS.values()} | {
        "REPERTORY_CONFIG",
        "REPERTORY_MCP_CONFIG",
    }
    given = {name for name in service["environment"] if name.startswith("REPERTORY_")}
    assert {"REPERTORY_QDRANT_URL", "REPERTORY_REDIS_URL", "REPERTORY_DATA_DIR"} <= given <= known


@each_of_ours
def test_our_services_wait_for_the_stores(service: dict[str, Any]) -> None:
    """They start once Qdrant and Redis are healthy."""
    waits = {name: how["condition"] for name, how in service["depends_on"].items()}
    assert waits == {"qdrant": "service_healthy", "redis": "service_healthy"}


def test_the_example_of_settings_is_complete() -> None:
    """It has every variable of the compose files, with its default."""
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    taken = dict(PLACEHOLDER.findall(text))
    passed = {
        name
        for service in [*SERVICES.values(), *CALLS.values()]
        for name, value in service.get("environment", {}).items()
        if value is None
    }
    example = dict(
        re.findall(r"^#(\w+)=(.*)$", (DEPLOY / ".env.example").read_text("utf-8"), re.MULTILINE)
    )
    assert set(example) == set(taken) | passed
    for name, default in taken.items():
        if default:
            assert example[name] == default, name
    assert example.pop("REPERTORY_SEARCH_MODEL") == DEFAULT.id
    assert (
        example.pop("REPERTORY_TELEMETRY_ON") == "true"
    )  # the value that enables it, not the default
    for one in SETTINGS.values():
        if given := example.get(one.variable):
            assert one.read(given, strict=False) == one.default, one.variable


def test_the_dockerfile_names_existing_files_and_extras() -> None:
    """The base image equals the default of the compose file."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    assert {"team", "torch"} <= set(extras)
    default = re.search(r"^ARG PYTHON_IMAGE=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert default
    for name in OURS:
        assert substituted(SERVICES[name]["build"]["args"]["PYTHON_IMAGE"]) == default[1]
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    for line in re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.MULTILINE):
        for source in line.split():
            assert (ROOT / source).exists(), source
            assert f"!{source}" in ignored


@pytest.mark.parametrize("command", sorted(set(re.findall(r'^CMD \["(\w+)"\]$', DOCKERFILE, re.M))))
def test_an_image_runs_an_existing_command(command: str) -> None:
    """It is a command of the command line."""
    done = subprocess.run(
        [sys.executable, "-m", "repertory_admin", command, "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_only_the_gpu_image_contains_torch() -> None:
    """The extra of the other images does not require torch."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    assert not [one for one in extras["team"] if re.match(r"torch|sentence|repertory", one)]
    assert re.findall(r"\[\$\{EXTRAS\}(.*?)\]", DOCKERFILE) == ["", ",torch"]


@pytest.mark.skipif(not shutil.which("bash"), reason="There is no bash here.")
@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_the_health_check_of_qdrant_reads_the_status(status: int, healthy: bool) -> None:
    """The image of Qdrant has bash but no HTTP client, so the check speaks HTTP in bash."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.end_headers()

    with serving(answer) as url:
        _, *command = (
            word.replace("6333", url.rpartition(":")[2]).replace("$$", "$")
            for word in SERVICES["qdrant"]["healthcheck"]["test"]
        )
        done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode == 0) is healthy


def test_prometheus_scrapes_every_query_service() -> None:
    """Its configuration names the service and its port."""
    configuration = yaml.safe_load((DEPLOY / "prometheus.yml").read_text("utf-8"))
    (job,) = configuration["scrape_configs"]
    assert job.get("metrics_path", "/metrics") == "/metrics"
    assert job["dns_sd_configs"][0]["names"] == ["query"]
    assert (
        job["dns_sd_configs"][0]["port"]
        == SERVICES["query"]["environment"]["REPERTORY_SERVER_PORT"]
    )
    assert set(SERVICES["prometheus"]["networks"]) & set(SERVICES["query"]["networks"])


def test_the_dashboard_shows_existing_metrics() -> None:
    """Every metric and label of every panel is exported by the query service."""
    dashboard = json.loads((DEPLOY / "grafana" / "repertory.json").read_text("utf-8"))
    known = exported()
    assert {panel["id"] for panel in dashboard["panels"]} == set(
        range(1, len(dashboard["panels"]) + 1)
    )
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            named = set(re.findall(r"\b(?:repertory|process)_\w+", target["expr"]))
            assert named, panel["title"]
            assert named <= set(known), panel["title"]
            labels = set().union(*(known[name] for name in named)) | {"instance", "job"}
            used = re.findall(r"by \(([^)]*)\)|\{(\w+)=", target["expr"])
            asked = {label.strip() for one in used for label in ",".join(one).split(",")} - {""}
            asked |= set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")))
            assert asked <= labels, panel["title"]


def test_the_dashboard_shows_all_our_metrics() -> None:
    """No exported metric is without a panel."""
    text = (DEPLOY / "grafana" / "repertory.json").read_text("utf-8")
    suffix = r"(_created|_sum|_count|_bucket|_total)$"
    ours = {re.sub(suffix, "", name) for name in exported() if name.startswith("repertory_")}
    assert [name for name in sorted(ours) if name not in text] == []


def test_grafana_finds_the_dashboard_and_its_source() -> None:
    """The provisioned files match the panels and the mounts."""
    provisioning = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())[
        "datasources"
    ]
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "repertory.yml").read_text())[
        "providers"
    ]
    dashboard = json.loads((DEPLOY / "grafana" / "repertory.json").read_text("utf-8"))
    used = {
        target["datasource"]["uid"] for panel in dashboard["panels"] for target in panel["targets"]
    }
    assert used == {source["uid"]}
    targets = [volume.split(":")[1] for volume in SERVICES["grafana"]["volumes"]]
    assert f"{provider['options']['path']}/repertory.json" in targets
    for volume in SERVICES["grafana"]["volumes"] + SERVICES["prometheus"]["volumes"]:
        source_path = volume.split(":")[0]
        assert source_path in COMPOSE["volumes"] or (ROOT / source_path).exists()
