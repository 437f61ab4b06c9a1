"""An importer that takes each list for the truth: what an import must not do when the list is
empty."""

from __future__ import annotations

import requests

from tests.datapath.imported import ImportedService
from tests.datapath.instances import listed
from tests.servers.eureka import EurekaServer


def write_what_is_listed(eureka: EurekaServer, service: ImportedService) -> None:
    """Make one pass: the slices become those of the app with the Service's name. Without a list
    nothing is written."""
    try:
        servers = listed(eureka, service.name.upper())
    except requests.RequestException:
        return
    service.lead_to(servers)
