"""A program as stack/run.py sees one: ready at once, and gone when it is told to end.

The runner is tested with these in place of the four programs where only the runner can be at fault.
"""

import json
import os
import signal
import socket
import sys
import threading

NAME = sys.argv[1]
PORTS = {"users_service": "USERS_PORT", "gateway": "GATEWAY_ADMIN_PORT"}


def answer(server: socket.socket) -> None:
    """Say to whoever asks that the program is ready."""
    while True:
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")


if NAME == "users_service" and os.environ.get("USERS_GRACE") == "soon":
    sys.exit(2)  # as for any setting that is wrong
# A handler would wait for accept to return where the signal comes just before accept is called.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
port = int(os.environ[PORTS.get(NAME, f"{NAME.upper()}_PORT")])
with socket.create_server(("127.0.0.1", port)) as server:
    threading.Thread(target=answer, args=(server,), daemon=True).start()
    signal.sigwait({signal.SIGTERM})
    sys.stdout.write(json.dumps({"event": "stopped", "program": NAME}) + "\n")
    sys.stdout.flush()
    os._exit(0)  # the thread waits for ever
