"""The embedded server: watch service, worker and query service in one process for one user."""
