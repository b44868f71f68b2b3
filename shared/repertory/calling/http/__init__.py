"""Calls API operations over HTTP: turns arguments into a request and the response into a result."""
