"""The person in representation version 2: `name` is an object of two texts.

`settings` reads the environment, `model` is the representation, `app` answers requests,
`openapi` and `problem` describe what it answers, `log` writes what happened, and `__main__`
starts and stops it all. The sibling program differs in this file and in `model` only.
"""

VERSION = "2"
DEFAULT_PORT = 8002
PROGRAM = __name__
