"""HTTP for the checkpoint store: uvicorn's protocol over the parser of httptools, with a bound for heads.

A batch of Spark asks the store a dozen times, each time for little, and with a parser in C that costs half. But it
holds a head for as long as it grows.
"""

from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES_MAX: Final = 16 * 1024


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    _is_in_head = False
    _head_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Take what came; a head that is too long by now ends the connection."""
        super().data_received(data)
        self._head_bytes = self._head_bytes + len(data) if self._is_in_head else 0
        if self._head_bytes > HEAD_BYTES_MAX and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        """Begin to count the head of a request."""
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop counting: its head is whole."""
        self._is_in_head = False
        super().on_headers_complete()
