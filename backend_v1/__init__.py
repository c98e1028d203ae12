"""An example backend that serves a person in version 1, in which `name` is one string."""
