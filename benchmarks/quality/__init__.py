"""How good the ranking is, measured through the commands that users have."""
