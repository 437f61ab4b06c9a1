"""The options for Eureka's login and TLS: they are combined or refused without any call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka.address import ConnectionOptions, Credentials, EurekaAddress
from eurekube_sync.cli.options.servers import (
    PASSWORD_VARIABLE,
    EurekaAccess,
    TlsFiles,
    with_access,
)
from eurekube_sync.model.errors import ConfigurationError
from tests.certificates import Authority

SECRET = "s3cr3t"


def put_together(url: str = "https://eureka.test/eureka", **given: Any) -> ConnectionOptions:
    """The client's options from these values."""
    address = EurekaAddress.parse(url)
    return with_access(
        ConnectionOptions(address=address),
        EurekaAccess(eureka_url=address.url, **given),
        (address,),
        SystemClock(),
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory with the test's files. The environment has no password."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(PASSWORD_VARIABLE, raising=False)
    (tmp_path / "user").write_text("jöe\n")
    (tmp_path / "password").write_text(f"{SECRET}\n")
    return tmp_path


def test_nothing_given_is_nothing_done(folder: Path) -> None:
    """The defaults are the usual authorities and no login."""
    options = put_together()
    assert (options.login, options.ca_file, options.client_certificate) == (None, "", None)
    assert not list(EurekaAccess(eureka_url="http://eureka").warnings)


def test_all_of_it_arrives_at_the_client(folder: Path) -> None:
    """A password file, a CA, certificate and key are used."""
    authority = Authority(folder=folder)
    certificate, key = map(str, authority.issue("sync@example.test"))
    options = put_together(
        eureka_username="jöe",
        eureka_password_file="password",
        eureka_tls=TlsFiles(ca=str(authority.ca_file), cert=certificate, key=key),
    )
    assert options.credentials is not None
    assert options.credentials() == Credentials(user="jöe", password=SECRET)
    assert options.client_certificate == (certificate, key)
    assert options.ca_file == str(authority.ca_file)
    assert SECRET not in repr(options)


def test_the_variables_password_goes_with_the_options_user(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The login of a URL is used unchanged."""
    monkeypatch.setenv(PASSWORD_VARIABLE, SECRET)
    credentials = put_together(eureka_username="joe").credentials
    assert credentials is not None
    assert credentials() == Credentials(user="joe", password=SECRET)
    monkeypatch.delenv(PASSWORD_VARIABLE)
    credentials = put_together(f"https://ann:{SECRET}@eureka.test/eureka").credentials
    assert credentials is not None
    assert credentials() == Credentials(user="ann", password=SECRET)


def test_a_token_file_is_a_login(folder: Path) -> None:
    """It is read at the start, and `repr` does not show the token."""
    (folder / "token").write_text(f"{SECRET}\n")
    credentials = put_together(eureka_token_file="token").credentials
    assert credentials is not None
    assert credentials().header == f"Bearer {SECRET}"
    assert SECRET not in repr(credentials())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"eureka_username": "a"}, "needs --eureka-password-file"),
        ({"eureka_password_file": "password"}, "needs --eureka-username"),
        ({"eureka_username": "a:b", "eureka_password_file": "password"}, "a colon"),
        ({"eureka_username": "a", "eureka_password_file": "absent"}, "cannot be read"),
        ({"eureka_tls": TlsFiles(ca="password")}, "ca: password holds no certificate"),
        ({"eureka_tls": TlsFiles(key="password")}, "--eureka-tls: key needs cert"),
        ({"eureka_tls": TlsFiles(cert="password")}, "the key in password cannot be used"),
        ({"url": "http://eureka.test", "eureka_tls": TlsFiles(ca="password")}, "is for https"),
        (
            {
                "url": f"https://a:{SECRET}@b",
                "eureka_username": "c",
                "eureka_password_file": "password",
            },
            "given twice",
        ),
        ({"eureka_token_file": "absent"}, "cannot be read"),
        (
            {
                "eureka_token_file": "password",
                "eureka_username": "c",
                "eureka_password_file": "password",
            },
            "given twice, as --eureka-token-file and --eureka-username",
        ),
        (
            {"url": f"https://a:{SECRET}@b", "eureka_token_file": "password"},
            "given twice, as --eureka-token-file and in --eureka-url",
        ),
    ],
)
def test_a_login_that_makes_no_sense_is_refused(
    folder: Path, given: dict[str, Any], words: str
) -> None:
    """The error is one sentence without a secret."""
    with pytest.raises(ConfigurationError) as caught:
        put_together(**given)
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)
