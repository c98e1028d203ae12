"""Code that several commands use: arguments, the client of the admin port, and offline input."""
