"""Reading untrusted files: bounded and cleaned."""
