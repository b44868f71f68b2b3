"""Contracts 1 and 2: skill files in a sandbox, ranked by cosine similarity."""
