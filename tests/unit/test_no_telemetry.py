"""Disabled telemetry imports nothing, and unsupported telemetry is an error at the start."""

import os
import subprocess
import sys

import pytest

from repertory import telemetry
from repertory.errors import ConfigurationError
from repertory.telemetry import spans

CODE = """
import sys
import repertory_query.server.run, repertory_watch.run
from repertory.search.engine import SearchEngine
heavy = ("opentelemetry.sdk", "opentelemetry.exporter", "google.protobuf")
print([name for name in sys.modules if name.startswith(heavy)])
"""
WORKER = """
import sys
import repertory_worker.app  # the client of Redis imports a part of the SDK, if that is installed
heavy = ("repertory.telemetry.", "opentelemetry.exporter", "google.protobuf")
print([name for name in sys.modules if name.startswith(heavy) and not name.endswith("spans")])
"""
HELP = """
import atexit, sys
sys.argv = ["repertory", "--help"]
from repertory_admin.__main__ import main
modules = lambda: [name for name in sys.modules if name.startswith("opentelemetry")]
atexit.register(lambda: print(modules()))
main()
"""


@pytest.mark.parametrize("code", [CODE, WORKER, HELP])
def test_opentelemetry_is_not_imported_while_telemetry_is_off(code: str) -> None:
    """Neither the servers, the workers nor the help import it."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


def test_a_span_costs_nothing_while_telemetry_is_off() -> None:
    """No object is created for it, and functions for threads are not wrapped."""
    assert spans.span("one") is spans.span("two")
    assert spans.carried(len) is len
    assert spans.current() == ""


@pytest.mark.parametrize(
    ("variable", "value"),
    [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_TRACES_EXPORTER", "zipkin")],
)
def test_unsupported_protocols_and_exporters_are_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """The error names the variable and its value."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=f"{variable} is '{value}'"):
        telemetry.begin("test", wanted=True)
    assert not spans.are_on()


def test_without_the_extra_the_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error contains the command that installs the extra."""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'repertory\[telemetry\]'"):
        telemetry.check(wanted=True)


def test_the_variables_of_opentelemetry_switch_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """``OTEL_SDK_DISABLED`` or an exporter ``none`` switches telemetry off."""
    for variable, value in (("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")):
        with monkeypatch.context() as patch:
            patch.setitem(os.environ, variable, value)
            telemetry.begin("test", wanted=True)
            assert not spans.are_on()
