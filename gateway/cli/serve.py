"""The command `serve`: answers requests."""

from argparse import ArgumentParser, Namespace

from gateway import app

HELP = "answer requests, as the gateway does without a command"


def add_arguments(_: ArgumentParser) -> None:
    """Add nothing: the environment sets what to serve."""


def run(_: Namespace) -> int:
    """Serve until asked to stop."""
    return app.run()
