"""OpenAPI documents: loading, parsing, validation against their schemas, and example bodies."""
