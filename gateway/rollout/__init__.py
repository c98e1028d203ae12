"""Shadows, the comparison of responses, cutovers, and the gates of cutovers."""
