"""The names of clients and their proof, access to APIs, rate limits, and the admin port's users."""
