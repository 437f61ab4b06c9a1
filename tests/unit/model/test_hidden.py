"""No representation of a value shows its secrets."""

from __future__ import annotations

import pytest
from rich.pretty import pretty_repr

from eurekube_sync.adapters.eureka.address import BearerToken, Credentials, EurekaAddress
from eurekube_sync.adapters.kubernetes.connection import Answer

SECRET = "s3cr3t"
WITH_SECRETS = (
    Credentials(user=SECRET, password=SECRET),
    BearerToken(SECRET),
    EurekaAddress(url="http://eureka/eureka", login=Credentials(user=SECRET)),
    Answer(status=201, body=SECRET.encode(), secrets=(SECRET,)),
)


@pytest.mark.parametrize("value", WITH_SECRETS, ids=lambda value: type(value).__name__)
def test_no_representation_shows_a_secret(value: object) -> None:
    """Neither in a log or a traceback, nor where rich shows it with the values around it."""
    for shown in (repr(value), str(value), f"{[value]}", pretty_repr({"held": value})):
        assert SECRET not in shown
        assert type(value).__name__ in shown
