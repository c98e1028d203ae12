"""Runs the backend until SIGTERM or SIGINT, then finishes the requests in flight."""

from os import environ
from socket import AF_INET, AF_INET6, create_server

from aiohttp import web

from .app import PROGRAM, VERSION, application, log

host = environ.get(f"{PROGRAM.upper()}_HOST", "127.0.0.1")
port = environ.get(f"{PROGRAM.upper()}_PORT", f"800{VERSION}")
grace = environ.get(f"{PROGRAM.upper()}_GRACE", "10")
name = environ.get("PERSON_FIRST_NAME", "Bob"), environ.get("PERSON_LAST_NAME", "Charlie")
try:
    listener = create_server((host, int(port)), family=AF_INET6 if ":" in host else AF_INET)
except (OSError, ValueError, OverflowError) as error:
    raise SystemExit(f"{PROGRAM}: cannot listen on {host}:{port}: {error}") from None
if not grace.isdecimal():
    raise SystemExit(f"{PROGRAM}: {PROGRAM.upper()}_GRACE={grace}: write seconds, such as 10")
web.run_app(
    application(*name),
    sock=listener,
    shutdown_timeout=float(grace),
    access_log=None,
    print=lambda _: log("listening", url=f"http://{host}:{listener.getsockname()[1]}"),
)
log("stopped")
