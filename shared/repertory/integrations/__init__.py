"""Thin adapters of a session for agent frameworks, each with its own extra."""
