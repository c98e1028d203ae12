"""Reports: what the admin port answers, as JSON and as text for people."""
