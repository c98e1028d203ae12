"""Messages: what surrounds a body that is converted, and values that go between the two."""
