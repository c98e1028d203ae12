"""The admin port: what operators see of a running gateway and change in it."""
