"""A service that creates users from JSON bodies and returns users by id."""
