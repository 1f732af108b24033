"""Bandits over HTTP: `driftbandit serve`, the page that shows them, and `driftbandit demo`.

`calls` has the table of operations, checks a request and counts it; `types` are the messages, `auth` has keys and
sessions. `deciding`, `managing`, `looking` and `status` answer the API, and `pages` the browser. `charts` computes what
the page draws. `app` joins them into one ASGI application, and `server` runs it; `traffic` is the demonstration.
`templates` is for programs.
Deciding, learning and storing is `driftbandit.bandit`."""
