"""Checks of conversions against the OpenAPI documents of the versions."""
