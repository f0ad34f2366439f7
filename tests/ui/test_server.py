"""The page over HTTP: who may ask, what, and that the newest question wins."""

from __future__ import annotations

import http.client
import json
import threading
import time
from pathlib import Path

import pytest

import planner
from planner.ui.controls import controls_of
from planner.ui.desk import Desk
from planner.ui.question import Question, Reply
from planner.ui.server import MOST_BYTES, PageServer
from planner.whatif.patching import open_base

PROBLEM = str(Path(__file__).parents[2] / "problems/two_node_h100.yaml")
JSON = {"Content-Type": "application/json"}


class Echo:
    """A desk that answers at once with what it was asked."""

    def __init__(self):
        self.asked = []

    def ask(self, question):
        self.asked.append(question)
        return Reply('{"status": "optimal"}', "<p>body</p>")

    def close(self):
        """Nothing runs."""


@pytest.fixture(scope="module")
def base():
    return open_base(PROBLEM)


def serving(base, desk, **options):
    server = PageServer(("127.0.0.1", 0), Question(PROBLEM, (), ()), controls_of(base), "a page", **{"open_to_others": False, **options})
    server.desk.close()
    server.desk = desk
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server


@pytest.fixture
def server(base):
    with serving(base, Echo()) as found:
        yield found
        found.shutdown()


def request(server, method="POST", path="/answer", body=b'{"values": {}}', headers=None):
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=30)
    connection.request(method, path, body if method == "POST" else None, JSON if headers is None else headers)
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply.status, reply.headers, content


def test_the_page_is_served_with_its_rules(server):
    """HTML that may load nothing from elsewhere and be framed by nobody."""
    status, headers, content = request(server, "GET", "/", headers={})
    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "DENY"
    assert b"deployments.chat.workload.concurrency" in content
    assert request(server, "GET", "/etc/passwd", headers={})[0] == 404
    assert request(server, "GET", "/../problems/two_node_h100.yaml", headers={})[0] == 404


@pytest.mark.parametrize(
    ("status", "options"),
    [
        (403, {"headers": {**JSON, "Host": "evil.example"}}),
        (403, {"headers": {**JSON, "Host": "127.0.0.1:1"}}),
        (403, {"headers": {**JSON, "Origin": "http://evil.example"}}),
        (403, {"headers": {**JSON, "Origin": "null"}}),
        (404, {"path": "/plan"}),
        (415, {"headers": {"Content-Type": "text/plain"}}),
        (413, {"body": b" " * (MOST_BYTES + 1)}),
        (400, {"body": b"{"}),
        (400, {"body": b"[" * 60_000}),
        (400, {"body": b"\xff\xfe"}),
        (400, {"body": b'{"values": {"model": 1}}'}),
    ],
)
def test_what_is_not_the_pages_own_is_refused(server, status, options):
    """Other hosts, other pages, other paths, other types, long and broken bodies: nothing reaches the desk."""
    found, _, content = request(server, **options)
    assert found == status
    assert json.loads(content)["faults"]
    assert server.desk.asked == []


def test_other_methods_are_refused(server):
    """Only GET and POST are known."""
    assert request(server, "PUT")[0] == 501
    assert request(server, "DELETE")[0] == 501


def test_other_hosts_may_ask_where_they_are_let_in(base):
    """`--host 0.0.0.0` lets other names in, but still no page of another origin."""
    with serving(base, Echo(), open_to_others=True) as server:
        assert request(server, headers={**JSON, "Host": "gpu-box:8765"})[0] == 200
        assert request(server, headers={**JSON, "Host": "gpu-box:8765", "Origin": "http://evil.example"})[0] == 403
        server.shutdown()


def test_the_page_gives_the_commands_answer_and_the_newest_question_wins(base):
    """A real desk: of many questions at once one is answered, with the plan that `planner solve` gives for it; the page is served meanwhile."""
    with serving(base, Desk()) as server:
        found = {}

        def ask(load):
            body = json.dumps({"values": {"deployments.chat.workload.concurrency": load}}).encode()
            found[load] = request(server, body=body)

        threads = []
        for load in (40, 41, 42, 43, 44, 64):
            threads.append(threading.Thread(target=ask, args=(load,)))
            threads[-1].start()
            time.sleep(0.02)
        assert request(server, "GET", "/", headers={})[0] == 200
        for thread in threads:
            thread.join()
        statuses = {load: reply[0] for load, reply in found.items()}
        assert statuses == {40: 409, 41: 409, 42: 409, 43: 409, 44: 409, 64: 200}
        reply = json.loads(found[64][2])
        expected = planner.solve(PROBLEM, overrides=["deployments.chat.workload.concurrency=64"]).plan.model_dump(mode="json")
        assert reply["changes"] == ["deployments.chat.workload.concurrency=64"]
        for plan in (reply["plan"], expected):
            plan["provenance"].pop("problem_sha256")
        assert reply["plan"] == expected
        assert not server.desk.busy
        impossible = json.dumps({"values": {}, "lose": ["h100-01", "h100-02"]}).encode()
        status, _, content = request(server, body=impossible)
        assert (status, json.loads(content)["plan"]["status"]) == (200, "infeasible")
        server.shutdown()
