"""The kinds of changes, one module for each: its model in gateway.yaml, and its conversion."""
