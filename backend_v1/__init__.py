"""The person in representation version 1: `name` is one text."""
