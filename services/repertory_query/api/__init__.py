"""The HTTP API: its operations, and their OpenAPI document."""
