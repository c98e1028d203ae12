"""The admin port: what operators read and change in a running gateway."""
