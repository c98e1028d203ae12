"""APIs, endpoints and routes, the snapshot compiled from them, and the plan for a request."""
