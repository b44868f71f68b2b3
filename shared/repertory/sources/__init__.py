"""Where items come from: one module for each type of source, and the registry that lists them."""
