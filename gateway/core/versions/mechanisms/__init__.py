"""The mechanisms by which a request names a version; each file is one, and describes itself."""
