"""The mechanisms by which a version is read: a file or two each."""
