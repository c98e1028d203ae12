"""Bodies of other formats than one JSON document, converted by the changes of JSON bodies."""
