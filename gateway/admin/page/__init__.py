"""The operator's page: action items, the versions, the rules, the audit log."""
