"""An example backend that serves a person in version 2, with separate first and last names."""
