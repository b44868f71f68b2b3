"""Backups of an embedded or a team's index: one file with all data that cannot be rebuilt."""
