"""The configuration as a whole: its text, its root model, its checks."""
