"""The configuration as a whole: the document, the root model and the checks."""
