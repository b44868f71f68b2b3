"""The servers in MCP configurations: one source for each server, with its tools as items."""
