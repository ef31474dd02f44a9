"""The ports of a server, which are reserved first and opened once there is a model to serve."""

import socket

from tf_transformer.errors import InputError


class Ports:
    """A port for REST and one for gRPC, reserved so that no other process takes them. Clients cannot connect yet.

    Args:
        host: the address to listen at.
        port: the port of REST; 0 takes a free one.
        grpc_port: the port of gRPC; 0 takes a free one.

    Raises:
        InputError: a port is in use, or this machine has no such address.
    """

    def __init__(self, host: str, port: int, grpc_port: int):
        if port == grpc_port != 0:
            raise InputError(f"REST and gRPC need different ports: give another --port. Received: {port} for both")
        self.host = f"[{host}]" if ":" in host else host
        self._grpc_port = grpc_port
        self._rest = _taken(host, port, "--port")
        try:
            self._grpc = _taken(host, grpc_port, "--grpc-port")
        except InputError:
            self._rest.close()
            raise

    def open_rest(self) -> socket.socket:
        """Return the socket of REST, which listens.

        Raises:
            InputError: another process has begun to listen there at the same moment.
        """
        try:
            self._rest.listen()
        except OSError as error:
            raise _cannot_listen(self.host, self._rest.getsockname()[1], "--port", error) from None
        return self._rest

    def release_grpc(self) -> str:
        """Release the port of gRPC, whose server opens it itself, and return its address."""
        self._grpc.close()
        return f"{self.host}:{self._grpc_port}"


def _cannot_listen(host: str, port: int, option: str, error: OSError) -> InputError:
    return InputError(f"cannot listen at {host}:{port} ({error.strerror}): give another {option}, or --host")


def _taken(host: str, port: int, option: str) -> socket.socket:
    holder = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        # Connections left by a server that has ended do not block the port.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if holder.family == socket.AF_INET6:
            holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        holder.bind((host, port))
    except OSError as error:
        holder.close()
        raise _cannot_listen(host, port, option, error) from None
    return holder
