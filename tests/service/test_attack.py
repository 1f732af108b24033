"""The service as an attacker meets it: sockets that trickle, names and headers that lie, pages that forge requests."""

import asyncio
import contextlib
import json
import socket
import time

import httpx
import pytest

from driftbandit.service.connections import Connections
from service.conftest import BUTTON, Served

AT = "/v1/bandits/button"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """One service for all of this: whatever is sent, the next test finds it well."""
    served = Served("serve", "--db", tmp_path_factory.mktemp("attack") / "journal.db", "--port", 0)
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


# ---- clients that take their time ------------------------------------------------------------------------------------


def test_connections_that_only_take_up_room_are_closed():
    """A real server with short patience: nothing sent, half a head, half a body, an answer that nobody reads; while one
    that is used, and a stream, stay."""
    import uvicorn

    async def app(scope, receive, send):
        more = scope["type"] == "http"
        while more and (message := await receive())["type"] == "http.request":
            more = message.get("more_body", False)
        if more:
            return  # gone
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/stream":
            await asyncio.sleep(1.2)
        size = 20_000_000 if scope["path"] == "/large" else 2
        await send({"type": "http.response.body", "body": b"x" * size})

    async def main():
        sock = socket.create_server(("127.0.0.1", 0))
        limits = Connections(100, kept=0.4, body=0.4)
        server = uvicorn.Server(
            uvicorn.Config(
                limits.wrap(app), http=limits.protocol(), log_level="error", lifespan="off", timeout_keep_alive=60
            )
        )
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        while not server.started:
            await asyncio.sleep(0.01)
        watching = asyncio.create_task(limits.watch())
        port = sock.getsockname()[1]

        async def ends(data, read=True):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**16)
            writer.write(data)
            began = time.monotonic()
            if not read:
                reader._transport.pause_reading()
                await asyncio.sleep(1.5)
                reader._transport.resume_reading()
            found = b""
            with contextlib.suppress(OSError):
                found = await asyncio.wait_for(reader.read(2**25), 5.0)
                while part := await asyncio.wait_for(reader.read(2**25), 5.0):
                    found += part
            writer.close()
            return time.monotonic() - began, found

        head = b"POST / HTTP/1.1\r\nHost: x\r\n"
        found = await asyncio.gather(
            ends(b""), ends(head), ends(head + b"Content-Length: 10\r\n\r\n12345"),
            ends(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n", read=False),
            ends(b"GET /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
        )  # fmt: skip
        watching.cancel()
        server.should_exit = True
        await serving
        sock.close()
        return found

    *bad, stream = asyncio.run(main())
    assert all(0.3 < took < 4.0 for took, _ in bad)
    assert len(bad[3][1]) < 20_000_000
    assert stream[0] > 1.0
    assert stream[1].endswith(b"xx\r\n0\r\n\r\n") or stream[1].endswith(b"xx")


def test_when_it_is_crowded_idle_connections_make_room():
    """Ten connections that sent nothing, and one that is being answered, where five are allowed."""
    import uvicorn

    async def app(scope, receive, send):
        await asyncio.sleep(2.5)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"xx"})

    async def main():
        sock = socket.create_server(("127.0.0.1", 0))
        limits = Connections(5)
        server = uvicorn.Server(
            uvicorn.Config(limits.wrap(app), http=limits.protocol(), log_level="error", lifespan="off")
        )
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        while not server.started:
            await asyncio.sleep(0.01)
        opened = [await asyncio.open_connection("127.0.0.1", sock.getsockname()[1]) for _ in range(11)]
        opened[0][1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.sleep(0.2)
        assert limits.sweep() == 0  # they may still send something
        await asyncio.sleep(1.0)
        assert limits.sweep() == 10
        assert limits.sweep() == 0
        ends = await asyncio.gather(*(reader.read() for reader, _ in opened[1:]), return_exceptions=True)
        assert all(end == b"" or isinstance(end, ConnectionError) for end in ends)
        answer = await opened[0][0].readline()
        for _, writer in opened:
            writer.close()
        server.should_exit = True
        await serving
        sock.close()
        return answer

    assert asyncio.run(main()).startswith(b"HTTP/1.1 200")


def test_a_body_that_breaks_off_is_no_fault_of_ours(small):
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


def test_headers_beyond_all_measure_are_refused(small):
    answer = raw(small, b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n")
    assert answer[9:12] in (b"400", b"431", b"")  # or the connection was cut


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
    assert small.post("/v1/bandits", wide).status_code == 422  # a field nobody knows


# ---- pages that forge requests ---------------------------------------------------------------------------------------


LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", f"{AT}/fix", {"origin": "http://evil.example"}, 403),
        ("POST", f"{AT}/fix", {"origin": "null"}, 403),
        ("POST", f"{AT}/fix", {"sec-fetch-site": "cross-site"}, 403),
        ("POST", f"{AT}/fix", {"sec-fetch-site": "same-site"}, 403),
        ("GET", f"{AT}/whatif", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
        ("GET", f"{AT}/whatif", LINK, 403),
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


# ---- streams ---------------------------------------------------------------------------------------------------------


def test_streams_are_limited_and_counted_until_they_end(small):
    """One key may hold 100 of the 200: the other hundred are for others. Opened all at once, none slips past."""

    async def main():
        opened = []

        async def one():
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(small))
            writer.write(f"GET {AT}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            opened.append(writer)
            return int((await reader.readline())[9:12])

        statuses = await asyncio.gather(*(one() for _ in range(130)))
        for writer in opened:
            writer.close()
        return statuses

    statuses = asyncio.run(main())
    assert sorted(set(statuses)) == [200, 503]
    assert statuses.count(200) == 100
    until = time.monotonic() + 10
    while True:  # they end, and there is room again
        with httpx.Client() as client, client.stream("GET", f"{small.url}{AT}/events") as answer:
            if answer.status_code == 200:
                break
        assert time.monotonic() < until
        time.sleep(0.1)
