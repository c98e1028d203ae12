"""Creates a user from a JSON body after validating it, and gives it back by its id.

**User**: a name and a birth date, with the id that the store gave it. **NewUser**: what a client
sends to have one made. **Violation**: a constraint that a body breaks, as the path of a field and
a message. **Problem**: any other refusal, as RFC 9457 writes it; a ProblemError becomes one.
**Store**: keeps users; what it acknowledged survives the end of the process. **Migration**: a step
of the database's shape, taken at start. **Database**: the connections that a store uses.

A request passes `middleware`, `app` (what is at which path), `body` (bytes to JSON),
`model` and `violations` (JSON to a NewUser, or what is wrong with it), `store` on its
`database` and `engine`, and `location`. `serving` runs the server, `log` says what happened,
`openapi` describes it all, `settings` reads the environment, and `__main__` puts it together.
"""

DEFAULT_PORT = 8003
PROGRAM = __name__
