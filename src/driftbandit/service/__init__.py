"""Bandits over HTTP: `driftbandit serve`, the page to watch them, and `driftbandit demo`.

`operations` is the table of everything that can be asked; `types` are the messages; `app` joins them into one ASGI
application; `server` runs it. Everything that decides or remembers is `driftbandit.live`."""
