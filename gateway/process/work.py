"""The root of a worker: puts its parts together, runs them, and takes them down in order.

It imports nothing of the state and of the admin port, which its supervisor has: a twentieth of the
time that a start takes, and 1.2 MB.
"""

import os

from gateway.observe import log
from gateway.process.reloader import Reloader
from gateway.process.running import on_hangup, run_with, stop_on_signals
from gateway.process.serving import Serving
from gateway.process.settings import Settings
from gateway.process.tasks import Tasks
from gateway.process.worker import SupervisorLostError, Worker


def run() -> int:
    """Serve as one of several workers; return the exit status, as `run_with` does."""
    return run_with(work)


async def work(settings: Settings) -> None:
    """Serve as one of several workers, until asked to stop or the supervisor has ended.

    Raises:
        ConfigError: the rules cannot be used in this process.
    """
    stop = stop_on_signals()
    on_hangup(lambda: None)  # its supervisor loads the rules
    worker = Worker(os.environ)
    try:
        rules, in_force, ahead = await worker.join()
    except SupervisorLostError:
        return
    tasks = Tasks(worker.deliver)
    log.count_dropped(worker.deliver)
    reloader = Reloader(settings.config, os.environ, None, rules)
    load, report = settings.shadow_load, worker.report_targets
    serving = Serving(reloader, in_force, worker.deliver, worker.trace, tasks, load, report)
    serving.set_ahead(ahead)

    async def listen() -> None:
        set_ahead, stand_in = serving.set_ahead, serving.stand_in
        await worker.listen(reloader.reload, serving.apply, set_ahead, stand_in)
        stop.set()

    tasks.start("channel", listen)
    tasks.start("alive", worker.report_alive)
    await serving.serve(worker.listeners, stop, settings.grace, worker.report_ready)
    tasks.stop()
    await worker.leave()
