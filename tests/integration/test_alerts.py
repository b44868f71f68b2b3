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
TESTS = (DEPLOY / "alerts.test.yml").read_text("utf-8")
OF_PROMETHEUS = {"instance", "job"}  # labels that Prometheus adds
NAME = r"\b(?:repertory_\w+|up)\b"

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


def test_every_alert_has_a_test() -> None:
    """alerts.test.yml mentions every alert."""
    assert [name for name in RULES if name not in TESTS] == []


def test_prometheus_reads_the_alerts() -> None:
    """prometheus.yml names the rule file at the path where docker-compose.yml mounts it."""
    configuration = yaml.safe_load((DEPLOY / "prometheus.yml").read_text("utf-8"))
    mounts = [one.split(":")[:2] for one in COMPOSE["services"]["prometheus"]["volumes"]]
    assert ["./deploy/alerts.yml", configuration["rule_files"][0]] in mounts
