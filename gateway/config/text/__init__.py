"""The text of gateway.yaml: YAML with positions, variables, and mistakes by line."""
