"""Background validation of live messages against the OpenAPI documents of their versions."""
