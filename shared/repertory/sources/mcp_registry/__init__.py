"""Servers of an MCP registry: one pinned version for each source, which awaits trust."""
