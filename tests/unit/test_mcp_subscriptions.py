"""A session of the newer protocol stays subscribed to changes of the tools."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast

import anyio
import pytest
from mcp import Client
from mcp.client.subscriptions import SubscriptionLost

from repertory.sources.mcp.conversation import Conversation
from repertory.sources.mcp.server import ServerConfig
from repertory.sources.mcp.traffic import Traffic
from repertory.sources.mcp.variables import fill_in


class Subscribable:
    """A client whose subscriptions end in one way after they have reported a change."""

    protocol_version = "2026-07-28"

    def __init__(self, end: str) -> None:
        self.end = end
        self.subscriptions = 0

    @asynccontextmanager
    async def listen(self, **_: bool) -> AsyncIterator[AsyncIterator[str]]:
        """Subscribe."""
        self.subscriptions += 1
        yield self.changes()

    async def changes(self) -> AsyncIterator[str]:
        """The reported changes."""
        yield "changed"
        if self.end == "lost":
            raise SubscriptionLost
        if self.end == "never":
            await anyio.sleep_forever()


@pytest.mark.parametrize(("end", "subscriptions"), [("closed", 2), ("lost", 2), ("never", 1)])
def test_an_ended_subscription_is_renewed(end: str, subscriptions: int) -> None:
    """It is renewed once time is up, so that a server that ends each one is only polled."""
    client, config = Subscribable(end), ServerConfig(name="lab", command="lab")

    async def wait() -> None:
        async with AsyncExitStack() as stack:
            asked = cast("Client", client)
            conversation = Conversation(
                config, fill_in(config), asked, Traffic(), anyio.CancelScope(), stack
            )
            await conversation.wait_for_change(0)
            await conversation.wait_for_change(0)
            assert client.subscriptions == 1
            await conversation.wait_for_change(0)

    anyio.run(wait)
    assert client.subscriptions == subscriptions
