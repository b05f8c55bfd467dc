"""A proxy that forwards connections, and can stop to forward."""

import contextlib
import socket
import threading


class Proxy:
    """Forwards connections to an address.

    While it is cut, connections stay open without data, as in a network that loses packets. What
    was sent meanwhile arrives afterwards, late.
    """

    def __init__(self, target):
        host, port = target.split(":")
        self.target = (host, int(port))
        self.is_whole = threading.Event()
        self.is_whole.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        self.is_whole.clear()

    def heal(self):
        self.is_whole.set()

    def close(self):
        self.listener.close()
        self.heal()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                threading.Thread(target=self._connect, args=[near], daemon=True).start()

    def _connect(self, near):
        self.is_whole.wait()
        try:
            far = socket.create_connection(self.target)
        except OSError:
            near.close()
            return
        with near, far:
            back = threading.Thread(target=self._forward, args=[far, near], daemon=True)
            back.start()
            self._forward(near, far)
            back.join()

    def _forward(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.is_whole.wait()
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)
