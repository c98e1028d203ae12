"""The log, the table of metrics, the state of targets, and the export of spans."""
