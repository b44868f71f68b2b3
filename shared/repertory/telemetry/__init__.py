"""OpenTelemetry: traces and metrics for the operator's collector. Off by default."""


def begin(service: str, *, wanted: bool) -> None:
    """Start sending the traces of this process, if the setting ``telemetry.on`` is on.

    Args:
        service: The name of the program; ``OTEL_SERVICE_NAME`` overrides it.
        wanted: The setting.

    Raises:
        ConfigurationError: As ``export.begin``.
    """
    if wanted:
        from repertory.telemetry import export  # noqa: PLC0415 - an optional extra

        export.begin(service)


def check(*, wanted: bool) -> None:
    """Check what ``begin`` needs, for a process whose children call it.

    Raises:
        ConfigurationError: As ``export.begin``.
    """
    if wanted:
        from repertory.telemetry import export  # noqa: PLC0415 - an optional extra

        export.check()
