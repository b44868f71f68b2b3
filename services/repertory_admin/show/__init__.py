"""How results are shown on the terminal: one module for each kind of result."""
