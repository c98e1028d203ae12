"""Message bodies: decoding of content codings and conversion of JSON between versions."""
