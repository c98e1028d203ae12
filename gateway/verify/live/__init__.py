"""Validation of live messages by the OpenAPI documents of their versions, in the background."""
