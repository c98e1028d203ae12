"""The operator's page: what waits for somebody, the versions, the rules, the audit log."""
