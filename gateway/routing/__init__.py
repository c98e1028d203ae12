"""APIs, endpoints, routes, the snapshot, and the plan for a request."""
