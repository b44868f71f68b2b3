"""The web pages: search, items, and the state and management of the server."""
