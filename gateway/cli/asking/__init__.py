"""The commands that ask a running gateway, by its admin port."""
