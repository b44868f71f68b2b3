"""How files are read: bounded, cleaned, and never trusted."""
