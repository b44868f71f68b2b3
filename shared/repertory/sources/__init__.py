"""The sources of items: one module for each type, and the registry that lists them."""
