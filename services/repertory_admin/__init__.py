"""The command line of Repertory."""
