"""Signing in without a key: OpenID Connect, and the headers of a trusted proxy."""
