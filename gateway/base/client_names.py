"""The forms of the names of clients."""

ANONYMOUS = ""
"""The name of a client for which no source finds a name."""


# The maximum length of a name, in characters. Names are keys of tables that are kept for long.
LONGEST = 64


UNVERIFIED = "unverified:"
"""The prefix of a claimed, unproved name, where another source can verify names."""
