"""A server of files over HTTP that counts requests, and that can misbehave."""

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
    """A file as it is served."""

    data: bytes
    etag: str | None = '"v1"'
    modified: str | None = None
    cache_control: str | None = None


@dataclass
class Origin:
    """What is served, what was asked for, and what goes wrong."""

    address: str = ""
    files: dict[str, Served] = field(default_factory=dict)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path and `Range` of each."""
    shown: list[Message] = field(default_factory=list)
    """The headers of each."""
    wanted: dict[str, str] = field(default_factory=dict)
    """Headers without which requests are answered with 401."""
    moved: dict[str, str] = field(default_factory=dict)
    """Where else requests for a path are sent."""
    failures: int = 0
    """How many of the next requests for bytes are answered with 503."""
    refusals: list[int] = field(default_factory=list)
    """Statuses that the next requests are answered with, whatever they ask."""
    cuts: int = 0
    """How many of the next answers with bytes end in the midst."""
    ranges: bool = True
    """Whether `Range` is heard."""
    held: threading.Event | None = None
    """What requests for bytes wait for."""
    arrived: threading.Event = field(default_factory=threading.Event)
    """Set when one does."""
    silent: threading.Event | None = None
    """What all answers wait for."""
    server: ThreadingHTTPServer | None = None
    """What accepts connections."""
    connections: list[socket.socket] = field(default_factory=list)
    """All connections that were accepted."""

    def put(self, path: str, data: bytes, etag: str | None = '"v1"', age: int | None = None) -> str:
        """Serve a file, or another one in its place. Answers its URL."""
        modified = None if age is None else formatdate(1_700_000_000 - age, usegmt=True)
        self.files[path] = Served(data, etag, modified)
        return self.address + path

    def modified_at(self, path: str) -> float:
        """Tell when a file was last modified, in seconds."""
        return parsedate_to_datetime(str(self.files[path].modified)).timestamp()

    def refuse(self) -> None:
        """Refuse connections from now on, and end those that are open."""
        assert self.server is not None
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def gets(self) -> int:
        """Count the requests for bytes."""
        return sum(method == "GET" for method, _, _ in self.requests)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

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
        """Tell with what a request is refused, if it is."""
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
    """All connections: those that wait to be accepted are not refused."""

    daemon_threads = True
    request_queue_size = 256


@contextmanager
def serving() -> Iterator[Origin]:
    """Serve for as long as it is entered."""
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
