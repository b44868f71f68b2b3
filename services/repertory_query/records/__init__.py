"""What is recorded of requests: the audit log, usage, metrics, and the latest searches."""
