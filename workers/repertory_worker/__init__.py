"""The worker service: Celery processes that turn jobs into points."""
