"""Values that move between the parts of a message."""
