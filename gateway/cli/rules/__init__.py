"""The commands about a file of rules; none of them asks a running gateway."""
