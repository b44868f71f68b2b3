"""Connects agent hosts: their configuration files, and the entry of Repertory in them."""
