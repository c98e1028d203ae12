"""The operator's page: action items, versions, the configuration, and the audit log."""
