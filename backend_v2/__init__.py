"""The person in representation version 2: `name` has a first and a last name."""
