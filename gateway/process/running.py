"""The event loop, the signals and the exit status of every process that serves."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine

# uvloop: libuv's event loop, on which moving bytes costs least.
import uvloop

from gateway.base.descriptors import open_standard_streams, raise_limit
from gateway.base.mistakes import ConfigError
from gateway.observe import log
from gateway.process.listening import ListenError
from gateway.process.settings import SettingError, Settings
from gateway.store.state import StateError

# Seconds until a running thread releases the GIL (sys.setswitchinterval). With the default of 5 ms,
# each turn of the event loop would wait that long while a thread converts or loads; a request takes
# several turns.
_THREAD_TURN = 0.0001


def run_with(serve: Callable[[Settings], Coroutine[None, None, None]]) -> int:
    """Serve until asked to stop; return the exit status: 0 done, 1 refused, 2 wrongly set."""
    sys.setswitchinterval(_THREAD_TURN)
    open_standard_streams()
    raise_limit()
    try:
        log.configure()
        uvloop.run(serve(Settings.from_environment(os.environ)))
    except (ConfigError, StateError, ListenError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except SettingError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    finally:
        log.finish()
    return 0


def on_hangup(act: Callable[[], None]) -> None:
    """Call a function on SIGHUP."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, act)


def stop_on_signals(announce: Callable[[], None] = lambda: None) -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set; the first signal calls `announce`."""
    stop = asyncio.Event()

    def stop_once() -> None:
        if not stop.is_set():
            announce()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop_once)
    return stop
