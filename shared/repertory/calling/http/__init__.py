"""Calls of operations over HTTP: arguments become a request, and the response a result."""
