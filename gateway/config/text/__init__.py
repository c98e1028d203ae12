"""The text of gateway.yaml: YAML with positions, environment variables, mistakes with lines."""
