"""How good the ranking is, on labelled queries."""
