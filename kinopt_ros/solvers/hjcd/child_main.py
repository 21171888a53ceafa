"""Main program of the child process: one engine, which answers as long as the plugin is there to ask.

It is a new interpreter that imports nothing but the library: neither ROS nor the program that the plugin is part of.
"""

import contextlib
import os
import queue
import sys
import threading
import traceback
from multiprocessing.connection import Connection

from kinopt_ros.errors import NotReadyError
from kinopt_ros.solvers.hjcd.engine import Engine
from kinopt_ros.solvers.hjcd.messages import Question, Ready, Refusal, Setup
from kinopt_ros.solvers.result import IkCandidates


def main(descriptor: int) -> None:
    """Serve the plugin at the other end of a socket until that is closed."""
    os.set_inheritable(descriptor, False)  # whoever is started from here must not hold it open
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # what is printed here is no output of the plugin's program
    connection = Connection(descriptor)
    asked: queue.SimpleQueue[Setup | Question] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, asked), name="hjcd listener", daemon=True).start()
    engine: Engine | None = None
    while True:
        message = asked.get()
        answer: Ready | IkCandidates | Refusal
        try:
            if isinstance(message, Setup):
                engine = Engine(message.robot, message.options)
                engine.load(message.shapes)
                answer = Ready()
            else:
                assert engine is not None
                answer = engine.solve(message.problem, message.every_lane)
        except NotReadyError as error:
            answer = Refusal(str(error), later=True)
        except Exception as error:  # the plugin decides what is to be done
            answer = Refusal(f"{type(error).__name__}: {error}")
        with contextlib.suppress(OSError):  # the plugin is gone: the listener ends the process
            connection.send(answer)


def _listen(connection: Connection, asked: "queue.SimpleQueue[Setup | Question]") -> None:
    """Read messages on a thread of its own, so that the process ends with the plugin's also while it computes or
    compiles."""
    while True:
        try:
            asked.put(connection.recv())
        except (EOFError, OSError):  # the other end is closed
            os._exit(0)
        except Exception:  # not readable: another version of the package is at the other end
            traceback.print_exc()
            os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
