"""Two networks joined by a cable, and a program in each: who is heard from elsewhere?

Run as ``unshare --net --mount python two_networks.py NODE_PROGRAM OUTSIDE_PROGRAM``, as root: the network of the
caller is one of them, the other is made here. The last line of output is that of the outside program. Neither sees the
shared memory of the other.
"""

import os
import signal
import subprocess
import sys
import time

ADDRESS, OTHER = "10.213.7.1", "10.213.7.2"


def run(*words: str) -> None:
    subprocess.run(words, check=True)


def main() -> int:
    node_program, outside_program = sys.argv[1:]
    run("mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", "/dev/shm")
    run("ip", "link", "set", "lo", "up")
    other = subprocess.Popen(["unshare", "--net", "--mount", "sleep", "120"])
    try:
        time.sleep(0.3)  # until unshare has made it
        run(
            "ip",
            "link",
            "add",
            "name",
            "cable",
            "type",
            "veth",
            "peer",
            "name",
            "end",
            "netns",
            str(other.pid),
        )
        run("ip", "addr", "add", f"{ADDRESS}/24", "dev", "cable")
        run("ip", "link", "set", "cable", "up")
        inside = ["nsenter", "--net", "--mount", "--target", str(other.pid)]
        setup = (
            "mount -t tmpfs -o size=256m tmpfs /dev/shm && ip link set lo up && "
            f"ip addr add {OTHER}/24 dev end && ip link set end up"
        )
        run(*inside, "sh", "-c", setup)
        # A group of its own: the program starts a node, which must end with it.
        node = subprocess.Popen(
            [sys.executable, "-c", node_program], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            assert node.stdout is not None
            domain = node.stdout.readline().strip()  # once it serves
            run(*inside, sys.executable, "-c", outside_program, domain, ADDRESS)
        finally:
            os.killpg(node.pid, signal.SIGKILL)
            node.wait()
    finally:
        other.kill()
        other.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
