"""The query service: search over HTTP, MCP and web pages."""
