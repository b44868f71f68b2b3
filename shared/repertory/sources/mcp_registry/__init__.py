"""Servers of an MCP registry: one pinned version for each source, which awaits trust."""

from repertory.sources.mcp_registry.entry import build, contained, recognise

__all__ = ["build", "contained", "recognise"]
