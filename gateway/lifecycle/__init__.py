"""Deprecation, sunset and brownout: from dates to header fields and refusals."""
