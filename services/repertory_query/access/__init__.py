"""Access: the caller and its rights, the origin of a request, its size, and requests per minute."""
