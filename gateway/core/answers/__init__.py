"""Answers: what a response says about itself, such as its links, written for one client."""
