"""Backups: everything that cannot be made again, in one file, of an embedded index or a team's."""
