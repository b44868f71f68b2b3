"""Thin adapters of a session for agent frameworks, each with an extra of its own."""
