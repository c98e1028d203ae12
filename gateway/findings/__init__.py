"""Findings: conditions that need attention, the verdict on retirement, and notifications."""
