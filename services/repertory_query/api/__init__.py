"""The HTTP API: its operations, and the OpenAPI document of them."""
