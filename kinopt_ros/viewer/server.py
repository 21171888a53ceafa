"""Start of the page's server, which this machine alone can reach unless asked otherwise."""

import contextlib
import io
import ipaddress
import logging
import socket
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from kinopt_ros.errors import InvalidRequestError, KinoptError, MissingPackageError, quoted
from kinopt_ros.viewer.incoming import guard, one_line

_log = logging.getLogger("kinopt.view")
HOST, PORT = "127.0.0.1", 8080


class PortInUseError(KinoptError):
    """Something else listens there."""


def require_viser() -> Any:
    """Return the package viser.

    Raises:
        MissingPackageError: it is not installed; the sentence says how to.
    """
    try:
        import viser
    except ImportError as error:
        raise MissingPackageError(
            f"the viewer needs viser: pip install 'kinopt_ros[view]', or 'viser>=1.0' ({error})"
        ) from error
    return viser


def start_server(host: str = HOST, port: int = PORT) -> Any:
    """Start a viser server.

    No page of another site may talk to it: a browser would open it a way to what listens on this machine only. viser's
    way to share a page by a server of its makers is closed.

    Args:
        host: address to listen at.
        port: 0 for any that is free.

    Raises:
        MissingPackageError: viser is not installed.
        PortInUseError: something listens there.
        InvalidRequestError: no address of this machine, or no port.
    """
    viser = require_viser()
    _check_free(host, port)

    class Server(viser.ViserServer):  # type: ignore[misc, name-defined]
        def request_share_url(self, verbose: bool = True) -> None:
            """Share nothing."""

    with contextlib.redirect_stdout(io.StringIO()):  # it prints where it listens, which the caller says
        server = Server(host=host, port=port, label="kinopt", verbose=False)
    if port and server.get_port() != port:  # taken in the meantime: it has gone on to another one by itself
        server.stop()
        raise _in_use(host, port)
    _look_at_connections(server, host)
    return server


def url_of(server: Any) -> str:
    """Return the address to open in a browser."""
    host = server.get_host()
    if host in ("0.0.0.0", "::"):
        host = "localhost"
    return f"http://{f'[{host}]' if ':' in host else host}:{server.get_port()}"


def _check_free(host: str, port: int) -> None:
    if not isinstance(port, int) or not 0 <= port <= 65535:
        raise InvalidRequestError(f"the port is {port}; allowed is 0 to 65535")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen()
    except (socket.gaierror, UnicodeError) as error:
        raise InvalidRequestError(f"there is no address {quoted(host)} ({error})") from error
    except PermissionError as error:
        raise InvalidRequestError(f"port {port} needs rights that this process does not have") from error
    except OSError as error:
        import errno

        if error.errno == errno.EADDRINUSE:
            raise _in_use(host, port) from error
        raise InvalidRequestError(
            f"cannot listen at {quoted(host)}, port {port}: {error.strerror}"
        ) from error


def _in_use(host: str, port: int) -> PortInUseError:
    return PortInUseError(
        f"port {port} of {host} is in use; name another one by --port, or --port 0 for any that is free"
    )


def _look_at_connections(server: Any, host: str) -> None:
    """Close connections that pages of other sites open, before anything is sent to them; look at what others send."""
    connections = server._websock_server
    upload_button = import_module("viser").GuiUploadButtonHandle

    def takes_files(uuid: Any) -> bool:
        control = server.gui._gui_input_handle_from_uuid.get(uuid)
        return control is None or isinstance(control, upload_button)

    async def look(client: Any) -> None:
        connection = connections._live_connections.get(client.client_id)
        if connection is None:
            return
        if is_own_page(connection.request.headers, host):
            guard(connection, connections._message_class.deserialize, takes_files)
        else:
            await connection.close(1008, "pages of other sites may not talk to this one")

    connections.on_client_connect(look)
    loop = connections._background_event_loop
    loop.call_soon_threadsafe(loop.set_exception_handler, one_line(_log.warning))


def is_own_page(headers: Any, host: str) -> bool:
    """Return whether a connection comes from this server's own page, or from no page at all.

    Browsers say by ``Origin`` which site's page connects. And one whose name another site's owner has pointed to this
    machine is told by ``Host``, which must be a name of this machine or the address that was asked for.
    """
    try:
        origin, named = headers.get("Origin"), headers.get("Host", "")
        if origin is None:
            return True
        if urlsplit(origin).netloc.lower() != named.lower():
            return False
        name = (urlsplit(f"//{named}").hostname or "").lower()
    except (LookupError, ValueError):  # one that is said twice, or no address: no browser does that
        return False
    return name in ("localhost", host.lower()) or _is_address(name)


def _is_address(name: str) -> bool:
    """Return whether a name is an address in numbers, which nobody can point elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
