"""Connects agent hosts by adding an entry for Repertory to their configuration files."""
