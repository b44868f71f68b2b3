"""Prometheus accepts the alert rules, they fire when they should, and name existing metrics."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.exported_metrics import exported

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY.parent / "docker-compose.yml").read_text("utf-8"))
(GROUP,) = yaml.safe_load((DEPLOY / "alerts.yml").read_text("utf-8"))["groups"]
RULES = {rule["alert"]: rule for rule in GROUP["rules"]}
TESTS = yaml.safe_load((DEPLOY / "alerts.test.yml").read_text("utf-8"))["tests"]
OF_PROMETHEUS = {"instance", "job"}  # labels that Prometheus adds
NAME = r"\b(?:repertory_\w+|up)\b"
LABEL = r'(\w+)="([^"]*)"'

each_rule = pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))


@pytest.mark.parametrize("command", [["check", "rules", "alerts.yml"], ["test", "rules"]])
def test_prometheus_accepts_the_alerts_and_their_tests_pass(command: list[str]) -> None:
    """A healthy server raises no alert; each state in alerts.test.yml raises the listed ones."""
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("There is no promtool here.")
    words = [*command, "alerts.test.yml"] if command[0] == "test" else command
    done = subprocess.run(
        [promtool, *words], cwd=DEPLOY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@each_rule
def test_an_alert_uses_existing_metrics(rule: dict[str, str]) -> None:
    """Every metric and label is exported by the query service or by Prometheus itself."""
    known = {**exported(), "up": set()}
    expression = rule["expr"]
    named = set(re.findall(NAME, re.sub(r'"[^"]*"', '""', expression)))
    assert named
    assert named <= set(known)
    labels = set().union(*(known[name] for name in named)) | OF_PROMETHEUS
    asked = {
        label
        for one in re.findall(r"by \(([^)]*)\)|\{(\w+)[!=~]", expression)
        for label in ", ".join(one).split(", ")
        if label
    }
    assert asked <= labels
    kept = re.match(r"\w+ by \(([^)]*)\)", expression)
    shown = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    assert shown <= ({*kept[1].split(", ")} if kept else labels)


@each_rule
def test_an_alert_says_what_to_do(rule: dict[str, dict[str, str]]) -> None:
    """Every alert has a severity, a delay, a summary and an action."""
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["for"]
    assert set(rule["annotations"]) == {"summary", "action"}
    for sentence in rule["annotations"].values():
        assert sentence.endswith(".")


def test_every_alert_fires_in_a_test() -> None:
    """alerts.test.yml expects each alert to fire, with its severity if one is given."""
    fired: dict[str, set[str]] = {}
    for test in TESTS:
        for one in test.get("alert_rule_test", ()):
            for expected in one["exp_alerts"]:
                fired.setdefault(one["alertname"], set()).add(expected["exp_labels"]["severity"])
        for one in test.get("promql_expr_test", ()):
            assert 'ALERTS{alertstate="firing"}' in one["expr"]
            for sample in one["exp_samples"]:
                assert sample["value"] > 0
                labels = dict(re.findall(LABEL, sample["labels"]))
                severity = labels.get("severity", RULES[labels["alertname"]]["labels"]["severity"])
                fired.setdefault(labels["alertname"], set()).add(severity)
    assert fired == {name: {rule["labels"]["severity"]} for name, rule in RULES.items()}


@pytest.mark.parametrize("test", TESTS, ids=[one["name"] for one in TESTS])
def test_the_tests_of_alerts_use_existing_metrics(test: dict[str, list[dict[str, str]]]) -> None:
    """Every series of alerts.test.yml is one that the query service or Prometheus exports."""
    known = {**exported(), "up": set()}
    for one in test["input_series"]:
        name, _, text = one["series"].partition("{")
        labels = {label for label, _ in re.findall(LABEL, text)}
        assert labels <= known[name] | OF_PROMETHEUS | {"process"}  # of several


def test_prometheus_reads_the_alerts() -> None:
    """prometheus.yml names the rule file at the path where docker-compose.yml mounts it."""
    configuration = yaml.safe_load((DEPLOY / "prometheus.yml").read_text("utf-8"))
    mounts = [one.split(":")[:2] for one in COMPOSE["services"]["prometheus"]["volumes"]]
    assert ["./deploy/alerts.yml", configuration["rule_files"][0]] in mounts
