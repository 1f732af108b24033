"""Answers that leave in one write are the answers that uvicorn would have sent."""

import importlib.util
import json
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

DECIDE = "POST /v1/bandits/button/decisions HTTP/1.1\r\nHost: localhost\r\n"


def ask(service, *parts: str, until: bytes = b"") -> str:
    """What comes back on one connection for these bytes, until it is closed or this has come."""
    place = urlsplit(service.url)
    with socket.create_connection((place.hostname, place.port), timeout=20) as connection:
        for part in parts:
            connection.sendall(part.encode())
        data = b""
        while (not until or until not in data) and (more := connection.recv(65536)):
            data += more
    return data.decode()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.skipif(importlib.util.find_spec("uvloop") is None, reason="uvloop is not installed")
def test_the_loop_is_uvloop(small):
    assert "uvloop/loop" in Path(f"/proc/{small.process.pid}/maps").read_text()


def test_an_answer_has_a_date_a_length_and_what_browsers_need(small):
    head, _, body = ask(small, DECIDE + "Content-Length: 2\r\n\r\n{}", until=b"}").partition("\r\n\r\n")
    status, *lines = head.split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert status == "HTTP/1.1 200 OK"
    assert set(headers) == {
        "date", "content-type", "content-length", "content-security-policy", "x-content-type-options",
    }  # fmt: skip
    assert int(headers["content-length"]) == len(body)
    assert json.loads(body)["arm"] in ("red", "green", "blue")


@pytest.mark.parametrize(
    "request_text",
    [DECIDE + "Connection: close\r\nContent-Length: 0\r\n\r\n", "GET /livez HTTP/1.0\r\nHost: localhost\r\n\r\n"],
    ids=["close", "1.0"],
)
def test_a_connection_is_closed_at_the_clients_request(small, request_text):
    answer = ask(small, request_text)
    assert answer.startswith("HTTP/1.1 200 OK")
    assert "connection: close" in answer


def test_a_head_has_no_body(small):
    both = "HEAD /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert ask(small, both, until=b"alive\n").count("alive") == 1


def test_requests_in_one_packet_are_answered_in_order(small):
    requests = [DECIDE + f"Content-Length: {len(body)}\r\n\r\n{body}" for body in ('{"id":"p1"}', '{"id":"p2"}', "{]")]
    answer = ask(small, "".join(requests), until=b'"invalid"}')
    assert [answer.index(text) for text in ("p1", "p2", "not valid JSON")] == sorted(
        answer.index(text) for text in ("p1", "p2", "not valid JSON")
    )


def test_a_body_that_comes_in_parts_is_read_to_its_end(small):
    first, second = '{"id":', '"parts"}'
    head = DECIDE + f"Content-Length: {len(first + second)}\r\n\r\n"
    assert '"id":"parts"' in ask(small, head, first, second, until=b"}")


@pytest.mark.parametrize("body", ['{"id":"a","id":"b"}', '{"id" :"a","id"\t: "b"}', '{"i\\u0064":"a","id":"b"}'])
def test_a_name_that_is_given_twice_is_refused(small, body):
    answer = ask(small, DECIDE + f"Content-Length: {len(body)}\r\n\r\n{body}", until=b"}")
    assert "422" in answer.partition("\r\n")[0]
    assert "given twice" in answer
