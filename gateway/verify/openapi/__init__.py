"""OpenAPI documents: loading, parsing, validation by their schemas, and example bodies."""
