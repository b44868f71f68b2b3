"""Usage: what callers searched for and read afterwards, and what follows for the catalogue."""
