"""Compares the chunk cache with the caches of fsspec, over a server on this machine, in one run.

    python bench/filesystems.py [--mib N] [--rounds N] [--folder FOLDER]

In every round, each operation runs on one system after the other, each with a file of its own.
Prints the median of each in milliseconds. Cached bytes are in the page cache, so the time is the
cost of a read.
"""

import argparse
import os
import random
import re
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec

import nuthatch
from nuthatch.fs import NuthatchCache

SYSTEMS = ["nuthatch", "open_url", "blockcache", "filecache"]
MIB = 1 << 20


class Handler(SimpleHTTPRequestHandler):
    """Ranges of one file."""

    protocol_version = "HTTP/1.1"
    data: bytes

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.wfile.write(self.answer())

    def answer(self) -> memoryview:
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        start, end = (int(found[1]), int(found[2]) + 1) if found else (0, len(self.data))
        body = memoryview(self.data)[start:end]
        self.send_response(206 if found else 200)
        if found:
            self.send_header(
                "Content-Range", f"bytes {start}-{start + len(body) - 1}/{len(self.data)}"
            )
        self.send_header("ETag", '"v1"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return body


class Server(ThreadingHTTPServer):
    """One whose clients may go when they like."""

    def handle_error(self, *_: Any) -> None:
        pass


@contextmanager
def serving(data: bytes) -> Iterator[str]:
    handler = type("Served", (Handler,), {"data": data})
    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class System:
    """One way to read a URL through a cache."""

    def __init__(self, name: str, folder: Path, url: str) -> None:
        self.name, self.above, self.url = name, folder / name, url
        self.turns = 0

    @property
    def folder(self) -> Path:
        """Where it caches. One that is left is another one, since files that are open stay."""
        return self.above / str(self.turns)

    def open(self) -> Any:
        """Open the file as a process would that has just begun."""
        NuthatchCache.clear_instance_cache()
        if self.name == "open_url":
            return nuthatch.open_url(self.url, cache=self.folder)
        if self.name == "nuthatch":
            return NuthatchCache("http", cache=self.folder).open(self.url)
        fs = fsspec.filesystem(
            self.name,
            target_protocol="http",
            cache_storage=str(self.folder),
            target_options={"block_size": MIB},
            skip_instance_cache=True,
        )
        return fs.open(self.url, block_size=MIB)

    def forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.turns += 1

    def whole(self) -> None:
        with self.open() as file:
            while file.read(MIB):
                pass

    def pieces(self, places: list[int], size: int) -> None:
        with self.open() as file:
            for place in places:
                file.seek(place)
                file.read(size)


def main() -> None:
    parser = argparse.ArgumentParser(prog="filesystems", description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the caches are made and removed")
    wanted = parser.parse_args()
    data = os.urandom(wanted.mib * MIB)
    draw = random.Random(1)
    few = [draw.randrange(len(data) - MIB) for _ in range(20)]
    many = [draw.randrange(len(data) - MIB) for _ in range(2000)]
    operations: list[tuple[str, bool, Callable[[System], None]]] = [
        ("first read of 20 ranges of 64 KiB", True, partial(System.pieces, places=few, size=65536)),
        ("first read of all", True, System.whole),
        ("all again", False, System.whole),
        ("2000 ranges of 64 KiB", False, partial(System.pieces, places=many, size=65536)),
        ("2000 ranges of 100 bytes", False, partial(System.pieces, places=many, size=100)),
        (
            "open, and the last 8 bytes",
            False,
            partial(System.pieces, places=[len(data) - 8], size=8),
        ),
    ]
    folder = Path(tempfile.mkdtemp(dir=wanted.folder))
    print(f"a file of {wanted.mib} MiB in blocks of 1 MiB, {wanted.rounds} rounds, ms")
    print(f"{'':36}" + "".join(f"{name:>12}" for name in SYSTEMS))
    try:
        with serving(data) as address:
            systems = [System(name, folder, address + "/data") for name in SYSTEMS]
            for name, anew, operation in operations:
                times: dict[str, list[float]] = {system: [] for system in SYSTEMS}
                for round_ in range(wanted.rounds):
                    for system in systems if round_ % 2 else systems[::-1]:
                        if anew:
                            system.forget()
                        start = time.perf_counter()
                        operation(system)
                        times[system.name].append((time.perf_counter() - start) * 1e3)
                medians = (statistics.median(times[system]) for system in SYSTEMS)
                print(f"{name:36}" + "".join(f"{median:12.1f}" for median in medians))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
