"""The person in representation version 1: `name` is one text.

`settings` reads the environment, `model` is the representation, `app` answers requests,
`openapi` and `problem` describe what it answers, `log` writes what happened, and `__main__`
starts and stops it all. The sibling program differs in this file and in `model` only.
"""

VERSION = "1"
DEFAULT_PORT = 8001
PROGRAM = __name__
