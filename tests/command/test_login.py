"""Login, TLS and proxy of Eureka on the command line: what is refused, what gives a warning, and
that no secret is shown."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from eurekube_sync.cli.command_line import exit_code
from eurekube_sync.cli.commands import run as run_command
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.embedded.http import Handler, Request, Response
from tests.certificates import Authority, server_context, serving_tls
from tests.command.program import SYNCERS, Ended, Program
from tests.command.test_passes import first_line

USER = "joe-of-eureka"
PASSWORD = 'p@:/%é "x\\w'
FIX = 'csrf.ignoringRequestMatchers("/eureka/**")'


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of Eureka's certificate."""
    return Authority(folder=tmp_path_factory.mktemp("authority"))


@pytest.fixture
def password_file(settled: Program) -> Iterator[Path]:
    """A mounted secret."""
    path = settled.folder / "password"
    path.write_text(f"{PASSWORD}\n")
    yield path
    path.unlink(missing_ok=True)


def assert_no_secret(*texts: str) -> None:
    """No text has the password or the whole login, in any encoding."""
    login = f"{USER}:{PASSWORD}".encode()
    forms = {
        PASSWORD,
        quote(PASSWORD, safe=""),
        quote(PASSWORD),
        quote_plus(PASSWORD),
        json.dumps(PASSWORD)[1:-1],
        json.dumps(PASSWORD, ensure_ascii=False)[1:-1],
        repr(PASSWORD)[1:-1],
        base64.b64encode(login).decode(),
        base64.b64encode(PASSWORD.encode()).decode(),
    }
    for text in texts:
        assert not [form for form in forms if form in text], text


class TestSecrets:
    @pytest.fixture(params=["variable", "file", "url"])
    def login(
        self, request: pytest.FixtureRequest, settled: Program, password_file: Path
    ) -> dict[str, str | None]:
        """The three ways to give the password, as variables. The registry asks for it."""
        settled.playground.eureka.credentials = (USER, PASSWORD)
        url = settled.playground.eureka_url.replace("://", f"://{USER}:{quote(PASSWORD, safe='')}@")
        ways: dict[str, dict[str, str | None]] = {
            "variable": {
                "EUREKUBE_SYNC_EUREKA_USERNAME": USER,
                "EUREKUBE_SYNC_EUREKA_PASSWORD": PASSWORD,
            },
            "file": {
                "EUREKUBE_SYNC_EUREKA_USERNAME": USER,
                "EUREKUBE_SYNC_EUREKA_PASSWORD_FILE": str(password_file),
            },
            "url": {"EUREKUBE_SYNC_EUREKA_URL": url},
        }
        return ways[request.param] | {"EUREKUBE_SYNC_DEBUG": "1"}

    def test_no_report_log_or_condition_contains_a_secret(
        self, settled: Program, login: dict[str, str | None]
    ) -> None:
        """This covers reports in each form, logs of each call, refusals, outages, conditions and
        events."""
        playground, said = settled.playground, []
        for options in (
            ["-v"],
            ["-o", "json"],
            ["-o", "yaml", "-v", "--log-format", "json"],
            ["--dry-run", "-o", "json"],
        ):
            ended = settled.run(*options, **login)
            assert ended.code == ExitCode.OK, ended.out + ended.err
            said += [ended.out, ended.err]
        ended = settled.command("keepalive", "-v", stdin="", **login)
        assert ended.code == ExitCode.OK, ended.out + ended.err
        said += [ended.out, ended.err]
        playground.eureka.refuse_writes = True
        ended = settled.run("-v", **login)
        assert (ended.code, FIX in ended.out) == (ExitCode.EUREKA_DENIED, True), ended.out
        said += [ended.out, ended.err]
        playground.eureka.refuse_writes = False
        playground.eureka.credentials = (USER, "another")
        ended = settled.run("-v", "-o", "json", **login)
        assert ended.code == ExitCode.EUREKA_DENIED
        said += [ended.out, ended.err]
        _, syncers = playground.kubernetes.call("GET", SYNCERS)
        _, events = playground.kubernetes.call("GET", "/api/v1/namespaces/rating/events")
        assert_no_secret(
            *said, json.dumps(syncers), json.dumps(syncers, ensure_ascii=False), json.dumps(events)
        )

    def test_the_report_of_an_outage_holds_no_secret(
        self, settled: Program, login: dict[str, str | None]
    ) -> None:
        """The message about an unreachable server has no login."""
        down = login | {
            "EUREKUBE_SYNC_EUREKA_URL": f"http://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:1/eureka",
            "EUREKUBE_SYNC_EUREKA_USERNAME": None,
            "EUREKUBE_SYNC_EUREKA_PASSWORD": None,
            "EUREKUBE_SYNC_EUREKA_PASSWORD_FILE": None,
        }
        ended = settled.run("-v", **down)
        assert ended.code == ExitCode.EUREKA_UNREAD, ended.out + ended.err
        assert_no_secret(ended.out, ended.err)

    def test_the_process_list_holds_no_secret(
        self, settled: Program, login: dict[str, str | None]
    ) -> None:
        """A daemon's arguments stay as they were given, without a password."""
        daemon = settled.start("run", "--daemon", **login)
        try:
            first_line(daemon)
            arguments = Path(f"/proc/{daemon.pid}/cmdline").read_bytes()
        finally:
            daemon.terminate()
        ended = settled.end(daemon)
        assert ended.code == ExitCode.OK
        assert_no_secret(arguments.decode(), ended.out, ended.err)

    def test_a_traceback_holds_no_secret(
        self,
        settled: Program,
        login: dict[str, str | None],
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        """With EUREKUBE_SYNC_DEBUG=1 it has lines of code, but no values."""

        def fail(*arguments: object) -> None:
            raise RuntimeError(f"a bug amid {arguments}")

        for name, value in settled.environment(**login).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(run_command, "run_passes", fail)
        assert exit_code(["run", "-v"]) == ExitCode.INTERNAL_ERROR
        out, err = capfd.readouterr()
        assert "Traceback" in err
        assert_no_secret(out, err)


def test_a_password_on_the_command_line_is_warned_of(settled: Program) -> None:
    """It works, and the warning names the variable. The same URL in the variable gives no
    warning."""
    settled.playground.eureka.credentials = (USER, "s3cr3t")
    url = settled.playground.eureka_url.replace("://", f"://{USER}:s3cr3t@")
    ended = settled.run("--eureka-url", url)
    assert ended.code == ExitCode.OK
    assert (
        "is in the process list of this machine; set EUREKUBE_SYNC_EUREKA_URL instead" in ended.err
    )
    assert "s3cr3t" not in ended.out + ended.err
    assert not settled.run(EUREKUBE_SYNC_EUREKA_URL=url).err


CONTRADICTIONS: dict[str, tuple[dict[str, str], str]] = {
    "two passwords": (
        {"USERNAME": "a", "PASSWORD": "b", "PASSWORD_FILE": "f"},
        "the password of Eureka is given twice",
    ),
    "no password": ({"USERNAME": "a"}, "--eureka-username needs --eureka-password-file or"),
    "no user": ({"PASSWORD": "b"}, "EUREKUBE_SYNC_EUREKA_PASSWORD needs --eureka-username"),
    "no user beside a file": (
        {"PASSWORD_FILE": "f"},
        "--eureka-password-file needs --eureka-username",
    ),
    "user with a colon": ({"USERNAME": "a:b", "PASSWORD": "c"}, "holds a colon"),
    "line's end": ({"USERNAME": "a", "PASSWORD": "c\n"}, "control characters"),
    "absent password": (
        {"USERNAME": "a", "PASSWORD_FILE": "absent"},
        "absent cannot be read: No such file",
    ),
    "empty password": ({"USERNAME": "a", "PASSWORD_FILE": "empty"}, "empty is empty"),
    "CA without TLS": ({"TLS": "ca=ca.pem"}, "--eureka-tls is for https"),
    "absent CA": (
        {"URL": "https://a", "TLS": "ca=absent"},
        "--eureka-tls: ca: absent cannot be read: No such file",
    ),
    "CA a folder": (
        {"URL": "https://a", "TLS": "ca=."},
        "cannot be read: it is a folder, a pipe or a device",
    ),
    "no CA": ({"URL": "https://a", "TLS": "ca=empty"}, "holds no certificate in PEM form"),
    "a key for a CA": (
        {"URL": "https://a", "TLS": "ca=own.key"},
        "holds no certificate in PEM form",
    ),
    "key alone": ({"URL": "https://a", "TLS": "key=own.key"}, "--eureka-tls: key needs cert"),
    "certificate alone": (
        {"URL": "https://a", "TLS": "cert=own.pem"},
        "the key in own.pem cannot be used",
    ),
    "another's key": (
        {"URL": "https://a", "TLS": "cert=own.pem,key=other.key"},
        "in PEM form and belong together",
    ),
    "encrypted key": (
        {"URL": "https://a", "TLS": "cert=own.pem,key=locked.key"},
        "must not be encrypted",
    ),
    "absent key": (
        {"URL": "https://a", "TLS": "cert=own.pem,key=absent"},
        "--eureka-tls: key: absent",
    ),
    "user in the URL too": (
        {"URL": "http://a:b@c", "USERNAME": "d", "PASSWORD": "e"},
        "given twice, in --eureka-url and",
    ),
}


@pytest.fixture(scope="module")
def files(shared: Program, authority: Authority) -> Program:
    """Good and bad files in the folder where the program runs."""
    from cryptography.hazmat.primitives import serialization

    folder = shared.folder
    (folder / "empty").write_text("")
    (folder / "f").write_text("x\n")
    (folder / "ca.pem").write_bytes(authority.ca_file.read_bytes())
    for name in ("own", "other"):
        certificate, key = authority.issue(f"{name}@example.test")
        (folder / f"{name}.pem").write_bytes(certificate.read_bytes())
        (folder / f"{name}.key").write_bytes(key.read_bytes())
    private = serialization.load_pem_private_key((folder / "own.key").read_bytes(), password=None)
    locked = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"locked"),
    )
    (folder / "locked.key").write_bytes(locked)
    return shared


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_or_a_bad_file_is_refused_before_anything_is_sent(
    files: Program, name: str
) -> None:
    """The exit code is 3, with one sentence. No server is called, and no secret is shown."""
    given, words = CONTRADICTIONS[name]
    variables: dict[str, str | None] = {
        f"EUREKUBE_SYNC_EUREKA_{key}": value for key, value in given.items()
    }
    ended = files.run(**variables)
    assert ended.code == ExitCode.CONFIGURATION, ended.out + ended.err
    assert words in ended.sentence
    assert "s3cr3t" not in ended.err
    assert not ended.eureka + ended.kubernetes


def over_tls(program: Program, authority: Authority, *options: str, clients: bool = False) -> Ended:
    """Make one pass against the embedded registry behind TLS."""

    def handle(request: Request) -> Response:
        program.playground.calls.append(request)
        return program.playground.eureka.handle(request)

    context = server_context(
        *authority.issue("localhost"), clients=authority.ca_file if clients else None
    )
    with serving_tls(handle, context) as url:
        return program.run("--eureka-url", f"{url}/eureka", *options)


def test_a_private_authority_and_a_client_certificate_work(
    settled: Program, authority: Authority
) -> None:
    """Both come from PEM files. Certificate and key may share a file."""
    certificate, key = authority.issue("sync@example.test")
    both = settled.folder / "both.pem"
    both.write_text(certificate.read_text() + key.read_text())
    for own in (f"cert={certificate},key={key}", f"cert={both}"):
        tls = f"--eureka-tls=ca={authority.ca_file},{own}"
        ended = over_tls(settled, authority, tls, clients=True)
        assert (ended.code, ended.eureka, ended.err) == (ExitCode.OK, Counter(GET=1, PUT=2), ""), (
            ended.out
        )


def test_the_environments_proxy_and_netrc_are_not_used(settled: Program) -> None:
    """A dead proxy in HTTP_PROXY and a login in .netrc change nothing."""
    (settled.folder / ".netrc").write_text("machine 127.0.0.1 login joe password s3cr3t\n")
    dead = "http://127.0.0.1:1"
    seen: list[Request] = []

    def watch(request: Request, registry: Handler) -> Response:
        seen.append(request)
        return registry(request)

    with settled.eureka_behind(watch):
        ended = settled.run(
            HTTP_PROXY=dead, http_proxy=dead, NO_PROXY="", no_proxy="127.0.0.1", ALL_PROXY=dead
        )
    (settled.folder / ".netrc").unlink()
    assert ended.code == ExitCode.OK, ended.out + ended.err
    assert seen
    of_netrc = f"Basic {base64.b64encode(b'joe:s3cr3t').decode()}"
    assert of_netrc not in [request.headers.get("authorization") for request in seen]


def test_csrf_protection_is_reported_once_for_many_instances(program: Program) -> None:
    """This holds with and without a login. One sentence has the fix, and no row of the table
    repeats it."""
    for number in range(3, 30):
        program.playground.create_pod(
            "rating", f"rating-{number}", f"10.0.0.{number}", {"app": "rating"}
        )
    for credentials in (None, (USER, PASSWORD)):
        program.playground.eureka.credentials = credentials
        program.playground.eureka.refuse_writes = True
        variables = {
            "EUREKUBE_SYNC_EUREKA_USERNAME": USER,
            "EUREKUBE_SYNC_EUREKA_PASSWORD": PASSWORD,
        }
        ended = program.run(**(variables if credentials else {}))
        assert ended.code == ExitCode.EUREKA_DENIED, ended.out
        assert (sum(FIX in sentence for sentence in ended.sentences), ended.out.count("CSRF")) == (
            1,
            1,
        ), ended.out
        assert ended.eureka["GET"] < 35
