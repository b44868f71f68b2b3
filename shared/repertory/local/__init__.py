"""An index in this process, also kept up to date by single commands without a server."""
