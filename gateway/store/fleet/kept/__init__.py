"""What a replica keeps in local files."""
