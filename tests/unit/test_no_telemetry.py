"""Telemetry that is off costs no import, and what cannot be sent is said at the start."""

import os
import subprocess
import sys

import pytest

from repertory import telemetry
from repertory.errors import ConfigurationError
from repertory.telemetry import spans

CODE = """
import sys
import repertory_query.run, repertory_watch.run
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
def test_nothing_of_opentelemetry_is_imported(code: str) -> None:
    """Neither the servers nor the help import it while the setting is off."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


def test_a_span_is_nothing_while_it_is_off() -> None:
    """No object is made for it, and no thread gets another function."""
    assert spans.span("one") is spans.span("two")
    assert spans.carried(len) is len
    assert spans.current() == ""


@pytest.mark.parametrize(
    ("variable", "value"),
    [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_TRACES_EXPORTER", "zipkin")],
)
def test_what_cannot_be_sent_is_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """The message names the variable and what it may be."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=f"{variable} is '{value}'"):
        telemetry.begin("test", wanted=True)
    assert not spans.are_on()


def test_without_the_extra_the_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'repertory\[telemetry\]'"):
        telemetry.check(wanted=True)


def test_the_variables_of_opentelemetry_switch_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """``OTEL_SDK_DISABLED`` and an exporter ``none`` send nothing."""
    for variable, value in (("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")):
        with monkeypatch.context() as patch:
            patch.setitem(os.environ, variable, value)
            telemetry.begin("test", wanted=True)
            assert not spans.are_on()
