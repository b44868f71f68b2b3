"""Servers from MCP registries: one pinned version for each source, which awaits trust."""
