"""An answer as each host takes it."""
