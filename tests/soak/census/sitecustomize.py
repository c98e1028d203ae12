"""Reports the numbers of tasks and memory blocks of a process. Python runs this at its start.

So the gateway itself needs no interface for it. asyncio lists all tasks, also those that a reload
hid from the garbage collector (gc.freeze). DNS lookups of the process use the name server at port
SOAK_NAME_SERVER.
"""

import os
import socket
import sys
import threading
from functools import partial
from os import getpid


def _tell(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"%d %d" % (_tasks(), sys.getallocatedblocks()))


def _tasks() -> int:
    from asyncio import tasks

    names = vars(tasks)  # the second name is that of Python 3.12 and later
    known = names["_all_tasks" if "_all_tasks" in names else "_scheduled_tasks"]
    while True:
        try:
            return sum(not task.done() for task in [*known])
        except RuntimeError:  # another thread has just created a task
            continue


_listener = socket.socket(socket.AF_UNIX)
_listener.bind(f"\0gateway-census-{getpid()}")  # abstract, so no file remains (unix(7))
_listener.listen()
threading.Thread(target=_tell, args=(_listener,), daemon=True).start()

if port := os.environ.get("SOAK_NAME_SERVER"):
    import aiodns

    vars(aiodns)["DNSResolver"] = partial(
        aiodns.DNSResolver, nameservers=["127.0.0.1"], udp_port=int(port)
    )
