"""Bodies: content codings undone, JSON converted, or refused as a whole."""
