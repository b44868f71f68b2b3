"""The Helm chart agrees with the compose file and the code, and Kubernetes accepts it."""

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from repertory.values import SETTINGS
from repertory_query.server.run import SHUTDOWN_TIMEOUT_S

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm"
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
VALUES = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
SCHEMA = json.loads((CHART / "values.schema.json").read_text("utf-8"))
TEMPLATES = {path.name: path.read_text("utf-8") for path in (CHART / "templates").iterdir()}
NAMES = {one.variable for one in SETTINGS.values()} | {"REPERTORY_CONFIG", "REPERTORY_MCP_CONFIG"}
KUBERNETES = "1.31.0"
KUBERNETES_GRACE_S = 30  # until it kills a container, unless a pod says otherwise
WORKLOADS = {"Deployment", "StatefulSet"}

FULL = {
    "image": {"registry": "registry.example.org/tools/", "tag": "1.2.3", "pullSecrets": ["pull"]},
    "settings": {"REPERTORY_SERVER_REQUESTS_PER_MINUTE": 2_000_000, "REPERTORY_AUDIT_TEXTS": True},
    "catalogue": {"config": '[[sources]]\ntype = "skills"\n', "existingClaim": "files"},
    "data": {"shared": True},
    "query": {"keysSecret": "keys", "environmentSecret": "oidc", "autoscaling": {"enabled": False}},
    "worker": {"environmentSecret": "hub", "autoscaling": {"enabled": False}},
    "watch": {"replicas": 2, "environmentSecret": "mcp"},
    "qdrant": {"apiKey": {"secretName": "stores"}},
    "redis": {"password": {"secretName": "stores"}},
    "ingress": {"enabled": True, "host": "repertory.example.org", "tlsSecret": "tls"},
}
EXTERNAL = {
    "qdrant": {"bundled": False, "url": "https://qdrant.example.org"},
    "redis": {"bundled": False, "url": "redis://redis.example.org:6379/0"},
}
PUBLIC = {"REPERTORY_SERVER_PUBLIC_URL": "https://repertory.example.org"}
each_use = pytest.mark.parametrize(
    "values", [{}, FULL, EXTERNAL], ids=["plain", "full", "external"]
)


def helm(*words: str, values: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Helm on some values."""
    program = shutil.which("helm")
    if not program:
        pytest.skip("There is no helm here.")
    command = [program, *words, "--values", "-"]
    given = json.dumps(values or {})
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)


def rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects of a release; its name, `repertory`, is also the prefix of our variables."""
    done = helm("template", "repertory", str(CHART), "--kube-version", KUBERNETES, values=values)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def pods(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The pods of all workloads, with the component of each."""
    for one in objects:
        if one["kind"] in WORKLOADS:
            template = one["spec"]["template"]
            yield template["metadata"]["labels"]["app.kubernetes.io/component"], template["spec"]


@each_use
def test_the_values_fit_their_schema(values: dict[str, Any]) -> None:
    """This includes the default values and the values of these tests."""
    Draft7Validator.check_schema(SCHEMA)
    assert [error.message for error in Draft7Validator(SCHEMA).iter_errors(VALUES)] == []
    assert [error.message for error in Draft7Validator(SCHEMA).iter_errors(values)] == []


@pytest.mark.parametrize(
    "values",
    [
        {"redis": {"bundeld": False}},
        {"settings": {"REPERTRY_SEARCH_LIMIT": 3}},
        {"settings": {"REPERTORY_OIDC_CLIENT_SECRET": "s3cret"}},
        {"settings": {"REPERTORY_REDIS_URL": "redis://elsewhere:6379/0"}},
        {"qdrant": {"image": "qdrant/qdrant"}},
        {"query": {"replicas": 0}},
        FULL | {"settings": PUBLIC},
    ],
)
def test_a_mistake_in_the_values_is_refused(values: dict[str, Any]) -> None:
    """Misspelt names, secrets among the settings, and settings that the chart sets itself."""
    assert list(Draft7Validator(SCHEMA).iter_errors(values))


def test_without_an_ingress_the_public_url_is_a_setting() -> None:
    """The server may be reachable by other means."""
    assert Draft7Validator(SCHEMA).is_valid(VALUES | {"settings": PUBLIC})


def test_values_and_schema_have_the_same_names() -> None:
    """So values.yaml is a complete reference."""

    def names(schema: dict[str, Any], values: dict[str, Any]) -> set[str]:
        declared = schema.get("properties", {})
        assert set(declared) - {"global"} == set(values)
        for name, value in values.items():
            if declared[name].get("additionalProperties") is False:
                names(declared[name], value)
        return set(values)

    assert names(SCHEMA, VALUES)


def test_the_chart_has_the_version_of_the_package() -> None:
    """The tag of its images defaults to this version."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert chart["appVersion"] == chart["version"] == project["version"]


@pytest.mark.parametrize("store", ["qdrant", "redis"])
def test_the_stores_equal_the_stores_of_compose(store: str) -> None:
    """They have the same image, user, environment and options."""
    service = COMPOSE[store]
    assert f":-{VALUES[store]['image']}}}" in service["image"]
    template = TEMPLATES[f"{store}.yaml"]
    user, _, group = service["user"].partition(":")
    assert f'"user" {user} "group" {group} ' in template
    for name, value in service["environment"].items():
        if name.startswith("QDRANT"):
            assert name in template
            assert value is None or str(value) in template
    for option in service.get("command", []):
        if option.startswith("--"):
            assert f"- {option}\n" in template
    default = f"${{REDIS_MAXMEMORY:-{VALUES['redis']['maxMemory']}}}"
    assert default in COMPOSE["redis"]["command"]


@pytest.mark.parametrize("name", ["query", "worker", "watch"])
def test_our_processes_have_the_limits_of_compose(name: str) -> None:
    """They also run the commands and the user of the Dockerfile."""
    limit = VALUES[name]["resources"]["limits"]["memory"]
    default = COMPOSE[name]["deploy"]["resources"]["limits"]["memory"]
    assert default.endswith(f":-{limit.replace('Gi', 'g')}}}")
    [command] = re.findall(r"args: \[(\w+)\]", TEMPLATES[f"{name}.yaml"])
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text("utf-8")
    image = dockerfile.partition(f" AS {name}\n")[2].partition("\nFROM")[0]
    assert f'CMD ["{command}"]' in image
    assert "10001" in dockerfile
    assert '"user" 10001 "group" 10001' in TEMPLATES[f"{name}.yaml"]


def test_every_variable_is_a_setting() -> None:
    """This includes variables in the schema and in the comments of values.yaml."""
    texts = [*TEMPLATES.values(), (CHART / "values.yaml").read_text(), json.dumps(SCHEMA)]
    used = {name for text in texts for name in re.findall(r"\bREPERTORY_[A-Z_]*[A-Z]\b", text)}
    assert used
    assert used <= NAMES


@each_use
def test_helm_finds_no_fault(values: dict[str, Any]) -> None:
    """`helm lint` accepts the chart with all of these values."""
    done = helm("lint", "--strict", str(CHART), values=values)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"redis": {"bundled": False}}, "redis.url is needed"),
        ({"qdrant": {"bundled": False}}, "qdrant.url is needed"),
        ({"ingress": {"enabled": True}}, "ingress.host is needed"),
        ({"watch": {"replicas": 2}}, "needs data.shared"),
    ],
)
def test_unusable_values_are_refused_with_a_reason(values: dict[str, Any], reason: str) -> None:
    """The message says which value is missing."""
    done = helm("template", "r", str(CHART), "--kube-version", KUBERNETES, values=values)
    assert done.returncode != 0
    assert reason in done.stderr


@each_use
def test_kubernetes_accepts_the_objects(values: dict[str, Any]) -> None:
    """They fit the schemas of Kubernetes, without unknown fields."""
    objects = rendered(values)
    schemas = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate")
    for one in objects:
        schemas.validate(one, KUBERNETES.rpartition(".")[0], strict=True)


@each_use
def test_no_pod_is_privileged(values: dict[str, Any]) -> None:
    """No pod runs as root, writes to its image, or has a token of the cluster."""
    found = dict(pods(rendered(values)))
    assert {"query", "worker", "watch"} <= set(found)
    for pod in found.values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False  # else Kubernetes sets REPERTORY_QDRANT_PORT
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        assert {"readinessProbe", "livenessProbe"} <= set(container)
        for mount in container["volumeMounts"]:
            assert mount["name"] in {volume["name"] for volume in pod["volumes"]} | {"storage"}


@each_use
def test_selectors_match_exactly_their_pods(values: dict[str, Any]) -> None:
    """This applies to services, autoscalers, disruption budgets and network policies."""
    objects = rendered(values)
    labels = [
        one["spec"]["template"]["metadata"]["labels"] for one in objects if one["kind"] in WORKLOADS
    ]
    for one in objects:
        spec = one.get("spec", {})
        found = {
            "Service": lambda spec: spec["selector"],
            "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"],
            "NetworkPolicy": lambda spec: spec["podSelector"]["matchLabels"],
        }.get(one["kind"])
        if found:
            assert sum(found(spec).items() <= label.items() for label in labels) == 1
        if one["kind"] == "HorizontalPodAutoscaler":
            target = spec["scaleTargetRef"]["name"]
            (deployment,) = [
                other
                for other in objects
                if other["metadata"]["name"] == target and other["kind"] == "Deployment"
            ]
            assert "replicas" not in deployment["spec"]
            (container,) = deployment["spec"]["template"]["spec"]["containers"]
            assert container["resources"]["requests"]["cpu"]


def test_secrets_are_references() -> None:
    """No object contains a secret, and each process gets only its own secrets."""
    found = dict(pods(rendered(FULL)))
    own = {"query": "oidc", "worker": "hub", "watch": "mcp"}
    for part, pod in found.items():
        (container,) = pod["containers"]
        given = [one["secretRef"]["name"] for one in container.get("envFrom", [])]
        assert given == [own[part]] if part in own else not given
        env = {one["name"]: one for one in container.get("env", [])}
        if part in own:
            reference = env["REPERTORY_QDRANT_API_KEY"]["valueFrom"]["secretKeyRef"]
            assert reference == {"name": "stores", "key": "api-key"}
            names = [*env]  # Kubernetes expands only variables that come before
            assert names.index("REDIS_PASSWORD") < names.index("REPERTORY_REDIS_URL")
            assert ":$(REDIS_PASSWORD)@" in env["REPERTORY_REDIS_URL"]["value"]
    settings = {
        one["name"]: one["value"]
        for one in found["query"]["containers"][0]["env"]
        if "value" in one
    }
    assert settings["REPERTORY_SERVER_REQUESTS_PER_MINUTE"] == "2000000"
    assert settings["REPERTORY_AUDIT_TEXTS"] == "true"
    assert settings["REPERTORY_SERVER_PUBLIC_URL"] == "https://repertory.example.org"


def test_each_process_reads_the_configuration() -> None:
    """Workers and the query service also read settings in its [search] section."""

    def annotations(text: str) -> list[str]:
        objects = rendered({"catalogue": {"config": text}})
        pods = [one["spec"]["template"] for one in objects if one["kind"] in WORKLOADS]
        found = [pod["metadata"].get("annotations", {}) for pod in pods]
        return [one["repertory/configuration"] for one in found if "repertory/configuration" in one]

    objects = rendered(FULL)
    (data,) = [one for one in objects if one["kind"] == "ConfigMap"]
    assert data["data"] == {"repertory.toml": '[[sources]]\ntype = "skills"\n'}
    found = dict(pods(objects))
    for part in ("query", "worker", "watch"):
        (container,) = found[part]["containers"]
        env = {one["name"]: one.get("value") for one in container["env"]}
        mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
        volumes = {one["name"]: one for one in found[part]["volumes"]}
        assert env["REPERTORY_CONFIG"] == f"{mounts['configuration']}/repertory.toml"
        assert volumes["configuration"]["configMap"] == {"name": data["metadata"]["name"]}
    one, other = annotations("[search]\nlimit = 3\n"), annotations("[search]\nlimit = 4\n")
    assert len(one) == len(other) == 3  # so a change restarts them
    assert not {*one} & {*other}
    assert "configuration" not in json.dumps([*pods(rendered({}))])


def test_an_update_refuses_no_request() -> None:
    """A query pod still answers for seconds, and Kubernetes then lets it finish its requests."""
    [pause] = re.findall(r'preStop: {exec: {command: \[sleep, "(\d+)"\]}}', TEMPLATES["query.yaml"])
    assert "terminationGracePeriodSeconds" not in TEMPLATES["query.yaml"]
    assert 3 <= int(pause) < KUBERNETES_GRACE_S - SHUTDOWN_TIMEOUT_S


def test_the_documented_restore_fits_the_watch_service() -> None:
    """Its patch replaces the arguments and every probe of the container, and nothing else."""
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    (patch,) = re.findall(r"kubectl patch deployment repertory-watch --patch '([^']+)'", page)
    (container,) = json.loads(patch)["spec"]["template"]["spec"]["containers"]
    template, helpers = TEMPLATES["watch.yaml"], TEMPLATES["_helpers.tpl"]
    assert f"- name: {container.pop('name')}\n" in template
    assert "args: [watch]" in template
    assert (container.pop("command"), container.pop("args")) == (["sleep"], ["infinity"])
    probes = helpers.partition('define "repertory.reportingProbes"')[2].partition("{{- end }}")[0]
    assert container == dict.fromkeys(re.findall(r"^(\w+Probe):", probes, re.MULTILINE))


def test_the_documented_values_are_valid() -> None:
    """The chart accepts them, and Repertory their configuration."""
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    (text,) = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    values = yaml.safe_load(text)
    assert [error.message for error in Draft7Validator(SCHEMA).iter_errors(values)] == []
    (source,) = tomllib.loads(values["catalogue"]["config"])["sources"]
    assert source["type"] == "git"


def test_one_volume_holds_the_data_that_cannot_be_recreated() -> None:
    """It outlives the release; the query service mounts it only if it can be shared."""

    def claim(values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        objects = rendered(values)
        (one,) = [one for one in objects if one["kind"] == "PersistentVolumeClaim"]
        mounts = {
            part: volume.get("persistentVolumeClaim", {}).get("claimName")
            for part, pod in pods(objects)
            for volume in pod["volumes"]
            if volume["name"] == "data"
        }
        return one, mounts

    plain, mounts = claim({})
    assert plain["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert plain["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert mounts["watch"] == plain["metadata"]["name"]
    assert not mounts["query"]
    shared, mounts = claim({"data": {"shared": True}})
    assert shared["spec"]["accessModes"] == ["ReadWriteMany"]
    assert mounts["query"] == mounts["watch"] == shared["metadata"]["name"]
