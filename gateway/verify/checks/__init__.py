"""What `check` finds beyond the rules themselves: fields in documents, and examples."""
