"""A server in another process: finding it, verifying its identity, and asking it over HTTP."""
