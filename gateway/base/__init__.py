"""Code that all packages share: errors, header fields, path templates, the base of all models."""
