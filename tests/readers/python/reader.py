"""What py-eureka-client finds, as a line of JSON after "SEEN " whenever it changes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, sys.argv[1])  # where pip put it, which is no part of the tests' environment

from py_eureka_client.eureka_client import (  # type: ignore[import-not-found]
    EurekaClient,
    WalkNodeException,
)


async def main(url: str, apps: str, refresh_seconds: str) -> None:
    """Read for ever."""
    client = EurekaClient(
        eureka_server=f"{url}/",
        app_name="reader",
        should_register=False,
        renewal_interval_in_secs=int(refresh_seconds),
    )
    await client.start()
    before = ""
    while True:
        plain = {app: await seen(client, app, prefer_https=False) for app in apps.split(",")}
        secure = {app: await seen(client, app, prefer_https=True) for app in apps.split(",")}
        now = json.dumps({"py-eureka-client": plain, "py-eureka-client, prefer_https": secure})
        if now != before:
            sys.stdout.write(f"SEEN {now}\n")
            sys.stdout.flush()
            before = now
        await asyncio.sleep(0.1)


async def seen(client: EurekaClient, app: str, *, prefer_https: bool) -> list[dict[str, Any]]:
    """Each instance that it would call, with where it would call it."""
    application = client.applications.get_application(app)
    instances = {instance.hostName: instance for instance in application.up_instances}
    all_of_them: list[dict[str, Any]] = []

    def refuse(url: str) -> None:
        """Note the URL, and have it try the next instance."""
        parts = urlsplit(url)
        instance = instances[parts.hostname or ""]
        seen_there = {
            "host": parts.hostname,
            "port": parts.port or (443 if parts.scheme == "https" else 80),
            "secure": parts.scheme == "https",
            "metadata": instance.metadata,
            "status": instance.status,
        }
        all_of_them.append(seen_there)
        raise ConnectionError

    with contextlib.suppress(WalkNodeException):
        await client.walk_nodes(app, prefer_https=prefer_https, walker=refuse)
    return all_of_them


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[2:]))
