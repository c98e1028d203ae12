"""Deprecation, sunset and brownout of versions: header fields that announce them, and refusals."""
