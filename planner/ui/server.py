"""The page over HTTP on loopback: requests of other hosts, other pages and other shapes are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from planner.diagnostics import PlannerError
from planner.report.page.html import environment
from planner.ui.controls import Controls, controls_data
from planner.ui.desk import Desk
from planner.ui.question import Question

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
MOST_BYTES: Final = 1 << 16
"""Longest question that is read [B]."""

PATIENCE: Final = 30.0
"""How long a connection may keep silent [s]."""

HEADERS: Final = (
    (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
)


class PageServer(ThreadingHTTPServer):
    """Serves one problem. `question` is the problem as it is; `open_to_others` lets other hosts ask, too."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], question: Question, controls: Controls, title: str, *, open_to_others: bool) -> None:
        super().__init__(address, Handler)
        self.question = question
        self.controls = controls
        self.title = title
        self.open_to_others = open_to_others
        self.desk = Desk()

    @property
    def url(self) -> str:
        """Address of the page."""
        host, port = self.server_address[:2]
        return f"http://{host if isinstance(host, str) else host.decode()}:{port}/"

    @cached_property
    def page(self) -> bytes:
        """The page itself."""
        controls = self.controls
        data = json.dumps(controls_data(controls)).replace("<", "\\u003c")
        text = environment().get_template("ui.html").render(title=self.title, controls=controls, data=data)
        return text.encode()

    def allowed(self, host: str, origin: str | None) -> bool:
        """Whether a request comes to this page by its own name, from itself or from no page.

        A name that somebody made to resolve to loopback is not ours: its pages must not be able to ask.
        """
        try:
            named = urlsplit(f"//{host}")
            name, port = named.hostname, named.port or 80
        except ValueError:
            return False
        if not self.open_to_others and (name not in LOOPBACK or port != self.server_address[1]):
            return False
        return origin is None or origin == f"http://{host}"

    def server_close(self) -> None:
        """Close the socket and end what is being solved."""
        self.desk.close()
        super().server_close()


class Handler(BaseHTTPRequestHandler):
    """`GET /` is the page, `POST /answer` a question. Everything else is refused."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version = "planner"
    sys_version = ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        """Send the page."""
        if not self._may():
            return
        if self.path != "/":
            self._send(HTTPStatus.NOT_FOUND, {"faults": ["there is only /"]})
            return
        self._reply(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page)

    def do_POST(self) -> None:
        """Answer a question."""
        if not self._may():
            return
        if self.path != "/answer":
            self._refuse(HTTPStatus.NOT_FOUND, "questions go to /answer")
            return
        if self.headers.get_content_type() != "application/json":
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send application/json")
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 9 or int(length) > MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"send at most {MOST_BYTES} bytes, and say how many")
            return
        try:
            changes = self.server.controls.changes(json.loads(self.rfile.read(int(length))))
        except (ValueError, RecursionError):
            self._send(HTTPStatus.BAD_REQUEST, {"faults": ["this is no JSON"]})
            return
        except PlannerError as error:
            self._send(HTTPStatus.BAD_REQUEST, {"faults": [str(item) for item in error.diagnostics[:20]]})
            return
        reply = self.server.desk.ask(replace(self.server.question, changes=changes))
        if reply is None:
            self._send(HTTPStatus.CONFLICT, {"faults": [], "overtaken": True})
            return
        status = HTTPStatus.OK if reply.plan is not None else HTTPStatus.UNPROCESSABLE_ENTITY
        changed = [str(change) for change in changes]
        plan = None if reply.plan is None else json.loads(reply.plan)
        self._send(status, {"faults": list(reply.faults), "body": reply.body, "plan": plan, "changes": changed})

    def _may(self) -> bool:
        if self.server.allowed(self.headers.get("Host", ""), self.headers.get("Origin")):
            return True
        self._refuse(HTTPStatus.FORBIDDEN, "this page answers on loopback only")
        return False

    def _refuse(self, status: HTTPStatus, words: str) -> None:
        """Refuse without having read the body, so the connection ends."""
        self.close_connection = True
        self._send(status, {"faults": [words]})

    def _send(self, status: HTTPStatus, data: dict[str, Any]) -> None:
        self._reply(status, "application/json", json.dumps(data).encode())

    def _reply(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in HEADERS:
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        try:
            self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the page has asked something newer and no longer listens

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that http.server passes
        """Say nothing: a slider would fill the terminal."""
