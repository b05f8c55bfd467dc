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
    shown: list[Message] = field(default_factory=list)
    """Headers of each request."""
    wanted: dict[str, str] = field(default_factory=dict)
    """Headers that a request must have; without them the status is 401."""
    moved: dict[str, str] = field(default_factory=dict)
    """URLs that requests for a path are redirected to."""
    failures: int = 0
    """Number of following requests for bytes that get status 503."""
    refusals: list[int] = field(default_factory=list)
    """Statuses of the following requests, whatever they request."""
    cuts: int = 0
    """Number of following responses with bytes that end in the middle."""
    ranges: bool = True
    """Whether ``Range`` is supported."""
    held: threading.Event | None = None
    """Event that requests for bytes wait for."""
    arrived: threading.Event = field(default_factory=threading.Event)
    """Event that is set when such a request arrives."""
    silent: threading.Event | None = None
    """Event that all responses wait for."""
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
        self.answer()

    def do_GET(self) -> None:
        if self.origin.held:
            self.origin.arrived.set()
            self.origin.held.wait()
        self.answer()

    def refusal(self, served: Served | None, body: bool) -> int | None:
        """Returns the status with which a request fails; ``None`` if it succeeds."""
        if self.origin.refusals:
            return self.origin.refusals.pop(0)
        if any(self.headers.get(name) != value for name, value in self.origin.wanted.items()):
            return 401
        if self.path in self.origin.moved:
            return 302
        if served is None:
            return 404
        if body and self.origin.failures > 0:
            self.origin.failures -= 1
            return 503
        return None

    def answer(self) -> None:
        origin, path = self.origin, self.path.partition("?")[0]
        asked = self.headers.get("Range")
        origin.requests.append((self.command, path, asked))
        origin.shown.append(self.headers)
        if origin.silent:
            origin.silent.wait()
        served = origin.files.get(path)
        body = self.command == "GET"
        if status := self.refusal(served, body):
            self.send_response(status)
            if status == 302:
                self.send_header("Location", origin.moved[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        assert served is not None
        data, status = served.data, 200
        if asked and origin.ranges:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last) + 1, len(data))
            data, status = data[start:end], 206
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(served.data)}")
        named = {"ETag": served.etag, "Last-Modified": served.modified}
        for name, value in {**named, "Cache-Control": served.cache_control}.items():
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
