"""OpenAPI documents: where they come from, what they promise, and examples of it."""
