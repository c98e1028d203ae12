"""The first gateway.yaml of an API, written from the OpenAPI documents of its versions."""
