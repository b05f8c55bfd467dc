"""A filesystem for fsspec that reads through the chunk cache.

``NuthatchCache`` wraps any other filesystem of fsspec. It is registered as the protocol
``nuthatch``, alone (``nuthatch://https://host/file``) and chained with another protocol
(``nuthatch::s3://bucket/key``). It requires ``fsspec``: ``pip install nuthatch[fsspec]``.
"""

from nuthatch.fs.files import CachedFile
from nuthatch.fs.filesystem import NuthatchCache
from nuthatch.fs.origins import Counts

__all__ = ["CachedFile", "Counts", "NuthatchCache"]
