"""The command `serve`: runs the gateway."""

from argparse import ArgumentParser, Namespace

from gateway import app

HELP = "serve requests, as without a command"


def add_arguments(parser: ArgumentParser) -> None:
    parser.epilog = (
        "Exit status: 0 after SIGTERM or Ctrl-C (SIGHUP reloads); 1 the configuration, the"
        " state or a port cannot be used; 2 a setting is wrong."
    )


def run(_: Namespace) -> int:
    return app.run()
