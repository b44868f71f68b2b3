"""OpenTelemetry: traces and metrics for the operator's collector. Off by default."""


def begin(service: str, *, wanted: bool) -> None:
    """Send the traces of this process from now on, if the setting ``telemetry.on`` wants that.

    Args:
        service: The name of the program, unless ``OTEL_SERVICE_NAME`` is another.
        wanted: The setting.

    Raises:
        ConfigurationError: As ``export.begin``.
    """
    if wanted:
        from repertory.telemetry import export  # noqa: PLC0415 - an optional extra

        export.begin(service)


def check(*, wanted: bool) -> None:
    """Check what ``begin`` needs, for a process whose children begin.

    Raises:
        ConfigurationError: As ``export.begin``.
    """
    if wanted:
        from repertory.telemetry import export  # noqa: PLC0415 - an optional extra

        export.check()
