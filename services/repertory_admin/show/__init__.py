"""How results look on the terminal: one module for each kind of result."""
