"""The service as an attacker meets it: bodies that break off, headers that lie, pages that forge requests."""

import contextlib
import json
import socket
import time

import httpx
import pytest

from service.conftest import BUTTON, Served

AT = "/v1/bandits/button"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """One service for all of this: whatever is sent, the next test finds it well."""
    served = Served("serve", tmp_path_factory.mktemp("attack") / "journal.db", "--port", 0)
    assert served.post("/v1/bandits", BUTTON).status_code == 201
    yield served
    served.stop()
    assert "Traceback" not in "".join(served.lines)


def port_of(served):
    return int(served.url.rsplit(":", 1)[1])


def raw(served, data, wait=5.0):
    """What comes back for these bytes, until the connection ends or nothing comes for a moment."""
    with socket.create_connection(("127.0.0.1", port_of(served)), timeout=wait) as sock:
        out = b""
        with contextlib.suppress(OSError):  # refused before all was sent, or nothing more comes
            sock.sendall(data)
        with contextlib.suppress(OSError):
            while part := sock.recv(65536):
                out += part
                sock.settimeout(0.3)
        return out


# ---- clients that go away ------------------------------------------------------------------------------------------


def test_a_truncated_body_is_not_a_server_error(small):
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", port_of(small))) as sock:
            sock.sendall(f"POST {AT}/rewards HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\n{{".encode())
            time.sleep(0.05)
    time.sleep(0.1)
    assert 'status="500"' not in small.get("/metrics").text
    assert "a request failed" not in "".join(small.lines)


# ---- requests that lie -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: 2\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 2",
        "Content-Length: 2\r\nContent-Length: 3",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: gzip, chunked",
        "Content-Length: -1",
        "Content-Length: +2",
        "Content-Length : 2",
        "Content-Length: 2\r\n Folded: 1",
        "Host: evil.example",
    ],
)
def test_a_request_whose_length_or_host_is_ambiguous_is_refused(small, head):
    smuggled = f"POST {AT}/fix HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 13\r\n\r\n" + '{"arm":"red"}'
    data = f"POST {AT}/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}\r\n\r\n0\r\n\r\n{smuggled}"
    answer = raw(small, data.encode())
    assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 501")), answer
    assert b"HTTP/1.1 200" not in answer
    assert small.get(AT).json()["fixed"] is None


@pytest.mark.parametrize("path", ["/" + "a" * 70_000, f"{AT}{'/x' * 20_000}", "/v1/bandits/" + "%00" * 500, "/%ff%fe",
                                  "/v1/bandits/b%0d%0aX-Evil:%201"])  # fmt: skip
def test_strange_paths_are_answered_with_400_or_404_or_422(small, path):
    answer = raw(small, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert answer[9:12] in (b"400", b"404", b"422"), answer[:100]
    assert b"\nX-Evil" not in answer


@pytest.mark.parametrize("head", [b"X: " + b"a" * 1_000_000, b"X: y\r\n" * 200_000])
def test_headers_beyond_all_measure_are_refused(small, head):
    answer = raw(small, b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n" + head + b"\r\n\r\n")
    assert answer[9:12] in (b"400", b"431", b"")  # or the connection was cut


def test_headers_after_the_body_are_refused(small):
    head = f"POST {AT}/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = raw(small, head.encode() + b"2\r\n{}\r\n0\r\n" + b"X: y\r\n" * 10_000 + b"\r\n")
    assert b"HTTP/1.1 400" in answer or not answer


def test_a_body_as_large_as_a_batch_allows_arrives_with_its_head(small):
    """The limit of heads does not count bodies."""
    ids = [f"{number:0128}" for number in range(1000)]
    assert httpx.post(f"{small.url}{AT}/decisions/batch", json={"ids": ids}).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/static/../keys.json", "/static/..%2f..%2faccess.py", "/static/%2e%2e/access.py", "/static//etc/passwd",
     "/static/README.md", "/static/uPlot.LICENSE%00.js"],
)  # fmt: skip
def test_static_files_are_those_of_the_list(small, path):
    answer = raw(small, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 404")


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 60_000, b'{"a":' * 10_000, b'{"available":' + b'[{"tuple":' * 5_000, b"\xff\xfe", b"\x00",
        b'{"id": "\\ud800"}',
        b'{"probability": 1e999}', b'{"id": NaN}', b'{"id": "a", "id": "b", "x": 1}', b'"' + b"x" * 60_000,
        b'{"available": [' + b"9" * 60_000 + b"]}", b"null", b"[]", b"1",
    ],
)  # fmt: skip
def test_bodies_that_are_meant_to_hurt_get_a_sentence(small, body):
    answer = httpx.post(f"{small.url}{AT}/decisions", content=body)
    assert answer.status_code == 422
    assert answer.json()["error"].endswith(".")


def test_arms_are_limited_in_number_and_length_however_they_come(small):
    for arm in (
        "x" * 201,
        {"tuple": ["x" * 201]},
        {"tuple": ["a\u202eb"]},
        {"tuple": []},
        {"list": [1]},
        "\u0000",
        "\ud800",
    ):
        body = json.dumps({"arm": arm}).encode()
        assert httpx.post(f"{small.url}{AT}/arms", content=body).status_code == 422, arm
    many = {"name": "many", "policy": "d-ucb", "arms": [f"a{n}" for n in range(1000)]}
    assert small.post("/v1/bandits", many).status_code == 201
    over = small.post("/v1/bandits/many/arms", {"arm": "one more"})
    assert (over.status_code, "at most 1000 arms" in over.text) == (422, True)
    wide = {"name": "wide", "policy": "ds-ts", "arms": ["a"], "who": "x"}
    assert small.post("/v1/bandits", wide).status_code == 422  # an unknown field


# ---- pages that forge requests ---------------------------------------------------------------------------------------


LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", f"{AT}/fix", {"origin": "http://evil.example"}, 403),
        ("POST", f"{AT}/fix", {"origin": "null"}, 403),
        ("POST", f"{AT}/fix", {"sec-fetch-site": "cross-site"}, 403),
        ("POST", f"{AT}/fix", {"sec-fetch-site": "same-site"}, 403),
        ("GET", f"{AT}/uplift", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
        ("GET", f"{AT}/uplift", LINK, 403),
        ("GET", "/", {**LINK, "sec-fetch-dest": "iframe"}, 403),
        ("GET", "/", LINK, 200),
        ("GET", AT, {"sec-fetch-site": "same-origin"}, 200),
        ("GET", AT, {"host": "evil.example"}, 403),
        ("GET", AT, {"host": "127.0.0.1.evil.example"}, 403),
        ("GET", AT, {"host": "localhost@evil.example"}, 403),
        ("GET", AT, {"host": "[::1"}, 422),
        ("GET", AT, {"host": "localhost:1"}, 200),
        ("POST", "/logout", {"origin": "http://evil.example"}, 403),
        ("POST", "/logout", {}, 303),
    ],
)  # fmt: skip
def test_what_a_foreign_page_makes_a_browser_send_is_refused(small, method, path, headers, status):
    body = {"arm": "red"} if path.endswith("/fix") else None
    assert small.call(method, path, body, headers=headers).status_code == status
    assert small.get(AT).json()["fixed"] is None


def test_no_page_can_be_framed(small):
    headers = small.get("/").headers
    assert headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
