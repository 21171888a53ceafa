"""Process of its own that forks the nodes of tests, with all that they import and compile already loaded.

It ends with the process that started it (``forked_nodes.py``). To it a request is a JSON text and two files, the
node's log and where its exit status is to be written; the answer is the node's process id.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import warnings
from typing import NoReturn


def _load() -> None:
    """Do all that a node for a Panda does before it is ready for everything; no thread is left."""
    import kinopt_ros.ros.spinning  # noqa: F401  # all that a node imports
    from kinopt_ros.errors import KinoptError
    from kinopt_ros.planning.solver_pool import SolverPool
    from kinopt_ros.robot.sources import load_robot
    from kinopt_ros.solvers.readiness import prepare_collisions

    robot = load_robot("panda")
    pool = SolverPool(robot, {}, ("cpu",))
    pool.prepare("cpu")
    for work in (pool.warm_up, lambda: prepare_collisions(robot), pool.warm_up_trajectories):
        try:
            work()
        except KinoptError as error:  # a package is not installed: nodes say so themselves
            print(f"not loaded: {error}", file=sys.stderr)
    pool.close()
    assert threading.active_count() == 1, "a fork would lack these threads"


def _serve(requests: socket.socket) -> tuple[str, list[str]]:
    """Fork one process for each request. Returns in these: module and arguments of the program to run."""
    alarm, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    statuses: dict[int, int] = {}
    selector = selectors.DefaultSelector()
    selector.register(requests, selectors.EVENT_READ)
    selector.register(alarm, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fd == alarm:
                os.read(alarm, 4096)
                _tell_who_has_ended(statuses)
                continue
            text, files, _, _ = socket.recv_fds(requests, 1 << 20, 2)
            if not text:
                _end()
            with warnings.catch_warnings():
                # Later Pythons warn of numpy's threads, which know what a fork is.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                selector.close()
                requests.close()
                for file in (alarm, woken, files[1], *statuses.values()):
                    os.close(file)
                return _become(json.loads(text), files[0])
            os.close(files[0])
            statuses[pid] = files[1]
            requests.send(str(pid).encode())


def _tell_who_has_ended(statuses: dict[int, int]) -> None:
    for pid, file in list(statuses.items()):
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            continue
        code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        # Before it is reaped: until then nobody else gets its number.
        os.write(file, str(code).encode())
        os.close(file)
        del statuses[pid]
        os.waitpid(pid, 0)


def _become(request: dict[str, object], log: int) -> tuple[str, list[str]]:
    """Take over environment, folder and output that the process would have been started with."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for file, number in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(file, number)
    os.close(nothing)
    os.close(log)
    environment, folder, module, arguments = (
        request[name] for name in ("environment", "folder", "module", "arguments")
    )
    assert isinstance(environment, dict)
    assert isinstance(arguments, list)
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)
    os.chdir(str(folder))
    return str(module), arguments


def _end() -> NoReturn:
    sys.stderr.flush()
    os._exit(0)


def main() -> None:
    """Load, then fork; in a forked process, run the program as ``python -m`` does."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    sys.path[0] = os.getcwd()
    _load()
    gc.collect()
    gc.freeze()  # what is not looked at is shared
    requests.send(b"loaded")
    module, arguments = _serve(requests)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
