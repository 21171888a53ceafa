"""Isolation of ROS traffic to this machine, for the demonstration, benchmarks and tests, whose nodes nobody else shall
reach."""

import errno
import ipaddress
import os
import socket
import struct
from pathlib import Path

from rclpy.utilities import get_rmw_implementation_identifier

from kinopt_ros.errors import KinoptError, MissingPackageError, quoted

PROFILE = Path(__file__).parent / "this_machine" / "fastdds.xml"
"""Configuration of Fast DDS: its only transports are shared memory and UDP on 127.0.0.1."""
MIDDLEWARE = "rmw_fastrtps_cpp"
"""The only middleware that can be kept to an address: Cyclone DDS listens on all of them whatever its configuration
says."""
_DOMAINS = range(1, 102)
"""Domains whose ports are free of the system's ephemeral ones."""
_FIRST_PORT, _PORTS = 7400, 250
"""UDP ports of DDS: the first one of domain 0, and how many each domain has."""
_ELSEWHERE = (
    "ROS_LOCALHOST_ONLY",
    "ROS_STATIC_PEERS",
    "ROS_DISCOVERY_SERVER",
    "ROS_SUPER_CLIENT",
    "FASTRTPS_DEFAULT_PROFILES_FILE",
    "FASTDDS_BUILTIN_TRANSPORTS",
    "FASTDDS_ENVIRONMENT_FILE",
    "RMW_FASTRTPS_USE_QOS_FROM_XML",
)
"""Variables by which ROS traffic can leave this machine, or that compete with the profile."""


def isolate() -> str:
    """Keep the ROS traffic of this process and its children on this machine, in a domain that no other process has from
    here.

    Discovery range LOCALHOST would not do: it says who is looked for, and its sockets listen on every network. So the
    middleware is Fast DDS with a profile of ours, and the range is left to that (``elsewhere`` looks at the outcome).

    To be called before rclpy.init. Returns the ROS_DOMAIN_ID: never the one that the caller had, where a robot may
    be listening.

    Raises:
        MissingPackageError: Fast DDS is not installed, or this process uses another middleware already.
        KinoptError: no domain is left.
    """
    used = os.environ.get("ROS_DOMAIN_ID", "0")
    domain = _free_domain(used)
    for name in _ELSEWHERE:
        os.environ.pop(name, None)
    os.environ["RMW_IMPLEMENTATION"] = MIDDLEWARE
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "SYSTEM_DEFAULT"
    os.environ["ROS_DOMAIN_ID"] = domain
    os.environ["FASTDDS_DEFAULT_PROFILES_FILE"] = str(PROFILE)
    os.environ["SKIP_DEFAULT_XML_FILE"] = "1"  # nor what lies in the current folder
    if not PROFILE.is_file():
        raise MissingPackageError(
            f"{PROFILE} is missing, without which ROS would listen on every network; install kinopt_ros again"
        )
    _require_middleware()
    if _is_fast_dds_2():
        # The older name; where it is out of date, Fast DDS warns of it.
        os.environ["FASTRTPS_DEFAULT_PROFILES_FILE"] = str(PROFILE)
    return domain


_taken: list[socket.socket] = []
"""Sockets that say which domains this process has, until it ends."""


def _free_domain(used: str) -> str:
    """Take a domain, but not this one. The TCP port of the same number as its first UDP port, which DDS leaves alone,
    says to others that it is taken."""
    first = os.getpid()  # so that they seldom try the same ones
    for k in range(len(_DOMAINS)):
        domain = _DOMAINS[(first + k) % len(_DOMAINS)]
        if str(domain) == used:
            continue
        port = socket.socket()
        try:
            port.bind(("127.0.0.1", _FIRST_PORT + _PORTS * domain))
        except OSError as error:
            port.close()
            if error.errno == errno.EADDRINUSE:
                continue
            # Where nothing can be bound, as without a loopback, nobody can say what is taken.
        else:
            _taken.append(port)
        return str(domain)
    raise KinoptError(
        f"all ROS domains from {_DOMAINS[0]} to {_DOMAINS[-1]} are taken on this machine; end what is running"
    )


def elsewhere(pid: int) -> list[str]:
    """Return sockets of a process that could be reached from elsewhere, as "udp 0.0.0.0:7400"; none if all is well."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(os.readlink(entry))
        except OSError:  # closed meanwhile
            continue
    found = []
    for kind in ("udp", "udp6", "tcp", "tcp6"):
        table = Path(f"/proc/{pid}/net/{kind}")
        if not table.exists():  # no IPv6 here
            continue
        for line in table.read_text().splitlines()[1:]:
            words = line.split()
            address, port = words[1].split(":")
            if f"socket:[{words[9]}]" in inodes and not _is_local(address):
                found.append(f"{kind} {_address(address)}:{int(port, 16)}")
    return sorted(found)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address as the kernel prints it: words of four bytes, each a number in this machine's order."""
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    return ipaddress.ip_address(struct.pack(f"={len(words)}I", *words))


def _is_local(text: str) -> bool:
    address = _address(text)
    inner = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (inner or address).is_loopback


def _require_middleware() -> None:
    try:
        middleware = get_rmw_implementation_identifier()
    except Exception as error:  # rclpy has a type for it that differs between distributions
        raise MissingPackageError(
            f"{MIDDLEWARE} cannot be loaded, which keeps ROS on this machine: {error}; install it "
            "(ros-$ROS_DISTRO-rmw-fastrtps-cpp)"
        ) from error
    if middleware != MIDDLEWARE:
        raise MissingPackageError(
            f"ROS uses {quoted(middleware)} in this process already; allowed is {MIDDLEWARE}, the only one that can be "
            "kept on this machine: unset RMW_IMPLEMENTATION"
        )


def _is_fast_dds_2() -> bool:
    """Check whether the middleware that was loaded is that of Jazzy."""
    return "/libfastrtps.so" in Path("/proc/self/maps").read_text()
