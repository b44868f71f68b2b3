"""What was approved of the catalogue, what has changed since, and what waits for a person."""
