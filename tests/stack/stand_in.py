"""A stand-in for a program in tests of stack/run.py: it is ready at once, and ends on SIGTERM."""

import json
import os
import signal
import socket
import sys
import threading

NAME = sys.argv[1]
PORTS = {"users_service": "USERS_PORT", "gateway": "GATEWAY_ADMIN_PORT"}


def answer(server: socket.socket) -> None:
    while True:
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")


if NAME == "users_service" and os.environ.get("USERS_GRACE") == "soon":
    sys.exit(2)  # the exit status for an invalid setting
# A signal handler would not run before accept returns, if the signal comes just before accept.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
port = int(os.environ[PORTS.get(NAME, f"{NAME.upper()}_PORT")])
with socket.create_server(("127.0.0.1", port)) as server:
    threading.Thread(target=answer, args=(server,), daemon=True).start()
    signal.sigwait({signal.SIGTERM})
    sys.stdout.write(json.dumps({"event": "stopped", "program": NAME}) + "\n")
    sys.stdout.flush()
    os._exit(0)  # the thread never ends
