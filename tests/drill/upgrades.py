"""A service on PostgreSQL is upgraded one process at a time, and taken back, while clients decide and reward."""

import contextlib
import subprocess
import sys

from driftbandit.bandit.audit import audit
from driftbandit.bandit.opening import reading
from tests.drill.load import ARMS, CONTEXTUAL
from tests.drill.served import CONTEXTUAL_BANDITS, Clients, Server, code_of, make, wait_for_more
from tests.drill.site import Finding, Site
from tests.drill.verify import Losses, losses

_BETWEEN = 400  # calls that are acknowledged between two replacements


def upgrade(site: Site, before: str) -> list[Finding]:
    """Replace both processes of a service by this code, and then again by the code of the checkout `before`."""
    target = site.journal()
    servers = [Server(target, before), Server(target, before)]
    try:
        make(servers[0])
        make(servers[0], name="default", wait="2 s", default=0.0)
        make(servers[1], name=CONTEXTUAL_BANDITS[0], features=CONTEXTUAL["features"])
        clients = Clients(servers, ("drill", "default", *CONTEXTUAL_BANDITS))
        try:
            for checkout in (None, before):
                for server in servers:
                    wait_for_more(clients, _BETWEEN)
                    server.end()
                    server.checkout = checkout
                    server.start()
            wait_for_more(clients, _BETWEEN)
        finally:
            clients.stop()
    finally:
        for server in servers:
            with contextlib.suppress(ProcessLookupError):
                server.end()
    return [_compare(site, target, clients, before)]


def _compare(site: Site, target: str, clients: Clients, before: str) -> Finding:
    found, other_arms = Losses(0, 0, 0, 0), 0
    for place, name in enumerate(clients.bandits):

        def own(id: str, place: int = place) -> bool:
            return int(id[1 : id.index("-")]) % len(clients.bandits) == place

        decided, rewarded = set(filter(own, clients.decided)), set(filter(own, clients.rewarded))
        found = Losses(*(a + b for a, b in zip(found, losses(target, decided, rewarded, name), strict=True)))
        journal = reading(target)
        rows = list(journal.decisions(journal.bandits()[name]))
        journal.close()
        other_arms += sum(row.id in decided and ARMS[row.slot] != clients.decided[row.id] for row in rows)
    differences = [text for report in audit(target) for text in report.differences]
    words = [sys.executable, "-m", "driftbandit", "audit", target]
    old = subprocess.run(words, env=code_of(before), capture_output=True, text=True, check=False)
    refused = sum(count for status, count in clients.answers.items() if status not in (0, 200))
    result = (
        f"{found}, {other_arms} other arms; {refused} refused; answers: {clients.counts}; longest pause "
        f"{clients.pause:.2f} s; audit: {'; '.join(differences[:2]) or '0 differ'}, before: exit code {old.returncode}"
    )
    good = not any(found) and not (other_arms or differences or refused or old.returncode) and clients.pause < 10.0
    return Finding("upgrade and back", site.kind, f"4 replacements, {clients.acknowledged} acknowledged", result, good)
