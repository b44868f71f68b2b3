"""A project's directory: its configuration, sources and trust, and what commands store for it."""
