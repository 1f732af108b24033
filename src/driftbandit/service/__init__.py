"""Bandits over HTTP: `driftbandit serve`, the page that shows them, and `driftbandit demo`.

`calls` has the table of operations and checks a request, `types` are the messages, `auth` the keys; `handlers` answer
the API and `pages` the browser. `app` joins them into one ASGI application, and `server` runs it. Deciding, learning
and storing is `driftbandit.live`."""
