"""What all packages need: errors, header fields, path templates, the base of all models."""
