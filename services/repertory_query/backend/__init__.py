"""The backend of a running server, as each caller sees it; cached answers, and its threads."""
