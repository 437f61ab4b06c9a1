"""What somebody would write instead in an afternoon: a loop with `requests`, one call an instance.

`python -m bench.plain_loop WHERE.json`, as `bench.floor`. It lists the slices, renews what is
registered, registers what is not, and removes what is gone. It has none of the promises of
docs/safety.md, and writes nothing to the cluster.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import requests

_OWN = "loop:"


def main() -> None:
    """One pass."""
    where: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    session = requests.Session()
    session.trust_env = False
    session.headers["Accept"] = "application/json"
    url = where["eureka"]
    listed = session.get(f"{url}/apps").json()["applications"]["application"]
    registered = {(app["name"], one["instanceId"]) for app in listed for one in app["instance"]}
    wanted = {
        (app, f"{_OWN}{address}:{port}"): (address, port) for app, address, port in endpoints(where)
    }
    for (app, key), (address, port) in wanted.items():
        path = f"{url}/apps/{app}/{key}"
        if (app, key) in registered and session.put(path).status_code == 200:
            continue
        session.post(f"{url}/apps/{app}", json=_body(app, key, address, port)).raise_for_status()
    for app, key in registered - wanted.keys():
        if key.startswith(_OWN):
            session.delete(f"{url}/apps/{app}/{key}")


def endpoints(where: dict[str, Any]) -> list[tuple[str, str, int]]:
    """App, address and port of each ready pod."""
    session = requests.Session()
    session.trust_env = False
    session.verify = where["ca_file"] or True
    if where["token"]:
        session.headers["Authorization"] = f"Bearer {where['token']}"
    found: list[tuple[str, str, int]] = []
    query = {"limit": "500"}
    while True:
        url = f"{where['kubernetes']}/apis/discovery.k8s.io/v1/endpointslices"
        page = session.get(url, params=query).json()
        for piece in page["items"]:
            app = piece["metadata"].get("labels", {}).get("kubernetes.io/service-name", "")
            if not app.startswith("app-"):
                continue
            for endpoint in piece["endpoints"] or []:
                if endpoint["conditions"]["ready"]:
                    found.append((app.upper(), endpoint["addresses"][0], piece["ports"][0]["port"]))
        if not page["metadata"].get("continue"):
            return found
        query["continue"] = page["metadata"]["continue"]


def _body(app: str, key: str, address: str, port: int) -> dict[str, Any]:
    return {
        "instance": {
            "instanceId": key,
            "hostName": address,
            "ipAddr": address,
            "app": app,
            "vipAddress": app.lower(),
            "status": "UP",
            "port": {"$": port, "@enabled": "true"},
            "dataCenterInfo": {
                "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
                "name": "MyOwn",
            },
            "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": 300},
        }
    }


if __name__ == "__main__":
    main()
