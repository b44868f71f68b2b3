"""The queue over TLS: its connections are encrypted, and the server's certificate is checked."""

import contextlib
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from repertory.indexing.celery_queue import celery_app
from repertory_worker.messages import Transport
from tests.support.certificates import FILE, self_signed
from tests.support.redis_server import RedisProcess

SENDER, WORKER = None, Transport
TLS_HANDSHAKE = b"\x16"  # the first byte of a TLS connection


@pytest.mark.parametrize("transport", [SENDER, WORKER], ids=["sender", "worker"])
@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "unknown"])
def test_the_password_is_sent_only_over_tls_to_a_trusted_server(
    tmp_path: Path, transport: type[Transport] | None, trusted: bool
) -> None:
    """Kombu alone checks no certificate, and with our transport it does not even use TLS."""
    context = self_signed(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor() as threads:
        listening.settimeout(10)

        def received() -> bytes:
            accepted, _ = listening.accept()
            with listening, accepted:  # further attempts are refused
                accepted.settimeout(10)
                if accepted.recv(1000, socket.MSG_PEEK)[:1] != TLS_HANDSHAKE:
                    return b"unencrypted"
                with (
                    contextlib.suppress(ssl.SSLError),
                    context.wrap_socket(accepted, server_side=True) as connection,
                ):
                    return connection.recv(1000)
            return b""

        first = threads.submit(received)
        url = f"rediss://:secret@127.0.0.1:{listening.getsockname()[1]}/0"
        app = celery_app(f"{url}?ssl_ca_certs={tmp_path / FILE}" if trusted else url)
        app.conf.broker_transport = transport
        with contextlib.suppress(Exception), app.connection_for_read() as connection:
            channel: Any = connection.default_channel
            channel.client.ping()  # fails, because the server says nothing
        data = first.result()
        assert b"secret" in data if trusted else data == b""


def test_the_queue_ignores_other_parameters_and_uses_the_same_database() -> None:
    """The client of Redis accepts parameters that Kombu does not know, such as the database."""
    with RedisProcess() as server:
        app = celery_app(f"{server.url}?health_check_interval=10&db=3")
        app.conf.broker_transport = Transport
        with app.connection_for_read() as connection:
            channel: Any = connection.default_channel
            client = channel.client
            assert client.ping()
            assert client.connection_pool.connection_kwargs["db"] == 3
