"""The log, the state of targets, and the export of spans."""
