"""Render answers in the formats of model hosts and for people."""
