"""An HTTP server of files that counts requests, and that can be made to fail."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from email.utils import formatdate, parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Served:
    """A file and its headers."""

    data: bytes
    etag: str | None = '"v1"'
    modified: str | None = None
    cache_control: str | None = None


@dataclass
class Origin:
    """The files, requests and planned failures of a server."""

    address: str = ""
    files: dict[str, Served] = field(default_factory=dict)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path and ``Range`` of each request."""
    request_headers: list[Message] = field(default_factory=list)
    """Headers of each request."""
    required_headers: dict[str, str] = field(default_factory=dict)
    """Headers that a request must have; without them the status is 401."""
    redirects: dict[str, str] = field(default_factory=dict)
    """URLs that requests for a path are redirected to."""
    failures: int = 0
    """Number of the next requests for bytes that get status 503."""
    next_statuses: list[int] = field(default_factory=list)
    """Statuses that the next requests of any kind get, in order."""
    cuts: int = 0
    """Number of the next responses with bytes that end in the middle."""
    ranges: bool = True
    """Whether ``Range`` is supported."""
    hold_bodies: threading.Event | None = None
    """Event that all requests for bytes wait for."""
    arrived: threading.Event = field(default_factory=threading.Event)
    """Event that is set when such a request arrives."""
    hold_all: threading.Event | None = None
    """Event that all requests wait for."""
    server: ThreadingHTTPServer | None = None
    """The server that accepts connections."""
    connections: list[socket.socket] = field(default_factory=list)
    """All connections that were accepted."""

    def put(self, path: str, data: bytes, etag: str | None = '"v1"', age: int | None = None) -> str:
        """Adds or replaces a file, and returns its URL."""
        modified = None if age is None else formatdate(1_700_000_000 - age, usegmt=True)
        self.files[path] = Served(data, etag, modified)
        return self.address + path

    def modified_at(self, path: str) -> float:
        """Returns the time of modification of a file in seconds since 1970."""
        return parsedate_to_datetime(str(self.files[path].modified)).timestamp()

    def refuse(self) -> None:
        """Refuses connections from now on, and closes the open ones."""
        assert self.server is not None
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def gets(self) -> int:
        """Returns the number of requests for bytes."""
        return sum(method == "GET" for method, _, _ in self.requests)


class Handler(BaseHTTPRequestHandler):
    """The handler of one connection."""

    protocol_version = "HTTP/1.1"
    origin: Origin

    def setup(self) -> None:
        self.origin.connections.append(self.request)
        super().setup()

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.send()

    def do_GET(self) -> None:
        if self.origin.hold_bodies:
            self.origin.arrived.set()
            self.origin.hold_bodies.wait()
        self.send()

    def failure_status(self, served: Served | None, body: bool) -> int | None:
        """Returns the status with which a request fails; ``None`` if it succeeds."""
        if self.origin.next_statuses:
            return self.origin.next_statuses.pop(0)
        required = self.origin.required_headers
        if any(self.headers.get(name) != value for name, value in required.items()):
            return 401
        if self.path in self.origin.redirects:
            return 302
        if served is None:
            return 404
        if body and self.origin.failures > 0:
            self.origin.failures -= 1
            return 503
        return None

    def send(self) -> None:
        origin, path = self.origin, self.path.partition("?")[0]
        requested = self.headers.get("Range")
        origin.requests.append((self.command, path, requested))
        origin.request_headers.append(self.headers)
        if origin.hold_all:
            origin.hold_all.wait()
        served = origin.files.get(path)
        body = self.command == "GET"
        if status := self.failure_status(served, body):
            self.send_response(status)
            if status == 302:
                self.send_header("Location", origin.redirects[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        assert served is not None
        data, status = served.data, 200
        if requested and origin.ranges:
            first, _, last = requested.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last) + 1, len(data))
            data, status = data[start:end], 206
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(served.data)}")
        headers = {"ETag": served.etag, "Last-Modified": served.modified}
        for name, value in {**headers, "Cache-Control": served.cache_control}.items():
            if value:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body and origin.cuts > 0:
            origin.cuts -= 1
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
        elif body:
            self.wfile.write(data)


class Server(ThreadingHTTPServer):
    """A server with a queue of connections that is long enough for all tests."""

    daemon_threads = True
    request_queue_size = 256


@contextmanager
def serving() -> Iterator[Origin]:
    """Runs the server until the ``with`` is left."""
    origin = Origin()
    handler = type("Handler", (Handler,), {"origin": origin})
    with Server(("127.0.0.1", 0), handler) as server:
        origin.address = f"http://127.0.0.1:{server.server_port}"
        origin.server = server
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield origin
        server.shutdown()
        thread.join()
