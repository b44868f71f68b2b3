"""Contracts 1 and 2: skill files of a sandbox, found by the plain cosine."""
