"""The servers of MCP configurations: one source for each server, its tools as items."""
