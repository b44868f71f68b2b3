"""The quality of the ranking, measured through the commands that users run."""
