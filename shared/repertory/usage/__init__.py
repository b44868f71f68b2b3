"""Usage: what callers searched for and used afterwards, and advice for the catalogue from it."""
