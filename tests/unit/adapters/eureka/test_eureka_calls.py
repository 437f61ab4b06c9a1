"""The Eureka client's calls: headers, retries, limits, and one clear sentence for each unusable
answer."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from eurekube_sync.adapters import tries
from eurekube_sync.adapters.eureka.address import ConnectionOptions, Credentials, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.model.errors import (
    ConfigurationError,
    RegistryDenied,
    RegistryError,
    RegistryRejected,
    RegistryUnavailable,
    RegistryUnusable,
)
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, LeaseTimes, Port
from eurekube_sync.model.sources import Cause, Complete, Unknown
from tests.in_process.eureka import InProcessAdapter
from tests.unit.worlds.clock import Clock

KEY = InstanceKey("RATING", "prod:shop:rating:10.0.0.1:8080")
EMPTY = b'{"applications":{"versions__delta":"1","apps__hashcode":"","application":[]}}'
HTML = Response(status=200, body=b"<!DOCTYPE html><html>sign in</html>", content_type="text/html")
NOBODY = ("PUT", "/eureka/apps/EUREKUBE-SYNC-PROBE/eurekube-sync-probe")
INSTANCE = Instance(
    key=KEY,
    host_name="10.0.0.1",
    ip_addr="10.0.0.1",
    port=Port(8080, True),
    secure_port=Port(443, False),
    vip_address="rating",
    secure_vip_address="rating",
    status=InstanceStatus.UP,
    lease=LeaseTimes(30, 300),
    metadata={"eurekube.owner": "prod"},
)


class Highest:
    """A random source that always gives its highest value, so that waits are the longest."""

    def random(self) -> float:
        return 1.0


@dataclass(slots=True)
class Server:
    """It gives the answers in order and repeats the last one. It records the requests. The renewal
    of an instance that cannot exist is a 404, as with Eureka, and is not recorded, unless it
    `agrees` to everything."""

    answers: list[Response | Exception]
    requests: list[Request] = field(default_factory=list)
    agrees: bool = False

    def handle(self, request: Request) -> Response:
        if (request.method, request.path) == NOBODY and not self.agrees:
            return Response(status=404)
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def connect(
    *answers: Response | Exception,
    url: str = "http://eureka:8761/eureka",
    clock: Clock | None = None,
    agrees: bool = False,
    **options: Any,
) -> tuple[EurekaClient, Server]:
    server = Server(list(answers), agrees=agrees)
    client = EurekaClient(
        ConnectionOptions(address=EurekaAddress.parse(url), **options),
        clock=clock or Clock(),
        random=Highest(),
        adapter=InProcessAdapter(server.handle),
    )
    return client, server


def error_of(call: Callable[[], object]) -> RegistryError:
    with pytest.raises(RegistryError) as caught:
        call()
    return caught.value


class TestRequests:
    def test_every_call_says_what_it_takes_and_who_it_is(self) -> None:
        """Every call sends Accept, gzip, identity and version. No call sends a cookie or an unasked
        login."""
        client, server = connect(Response(status=200, body=EMPTY))
        assert client.list_instances() == Complete(data=())
        headers = server.requests[0].headers
        assert headers["accept"] == "application/json"
        assert headers["accept-encoding"] == "gzip"
        assert headers["discoveryidentity-name"] == "eurekube-sync"
        assert headers["user-agent"].startswith("eurekube-sync/")
        assert not headers.keys() & {"cookie", "authorization"}

    def test_each_call_has_its_method_and_path(self) -> None:
        """A renewal is a PUT without a timestamp. A cancel is a DELETE. No call goes to
        `/status`."""
        client, server = connect(Response(status=200))
        client.renew(KEY)
        client.cancel(KEY)
        client.register(INSTANCE, dirty_timestamp=1)
        path = "/eureka/apps/RATING/prod:shop:rating:10.0.0.1:8080"
        assert [(one.method, one.path, dict(one.query)) for one in server.requests] == [
            ("PUT", path, {}),
            ("DELETE", path, {}),
            ("POST", "/eureka/apps/RATING", {}),
        ]
        assert server.requests[2].headers["content-type"] == "application/json"

    def test_an_odd_id_stays_one_segment(self) -> None:
        """Characters that would change the path are encoded."""
        client, server = connect(Response(status=200))
        client.renew(InstanceKey("A/B", "x?y#z/../q"))
        assert server.requests[0].path == "/eureka/apps/A%2FB/x%3Fy%23z%2F..%2Fq"

    def test_a_zipped_list_is_unzipped(self) -> None:
        zipped = Response(
            status=200, body=gzip.compress(EMPTY), headers={"Content-Encoding": "gzip"}
        )
        assert connect(zipped)[0].list_instances() == Complete(data=())

    def test_credentials_of_the_url_become_a_login(self) -> None:
        """User and password of the URL are percent-decoded and sent as basic authentication. The
        path does not hold them."""
        client, server = connect(
            Response(status=200, body=EMPTY), url="http://us%40er:p%C3%A4ss@eureka/eureka/"
        )
        client.list_instances()
        expected = base64.b64encode("us@er:päss".encode()).decode()
        assert server.requests[0].headers["authorization"] == f"Basic {expected}"
        assert server.requests[0].path == "/eureka/apps"


class TestAddress:
    @pytest.mark.parametrize(
        "text",
        [
            "",
            "eureka:8761",
            "ftp://eureka/eureka",
            "http://",
            "http://a:b:c/",
            "http://e/eureka?x=1",
            "http://a/,http://b/",
        ],
    )
    def test_a_bad_url_is_a_wrong_setting(self, text: str) -> None:
        """A text that is not exactly one http or https URL is refused before any call."""
        with pytest.raises(ConfigurationError):
            EurekaAddress.parse(text)

    def test_a_password_is_never_shown(self) -> None:
        """Neither the printable URL, nor `repr`, nor an error holds the password."""
        address = EurekaAddress.parse("https://user:s3cret@eureka:8761/eureka/")
        assert (address.url, address.login) == (
            "https://eureka:8761/eureka",
            Credentials(user="user", password="s3cret"),
        )
        assert "s3cret" not in repr(address)
        with pytest.raises(ConfigurationError) as caught:
            EurekaAddress.parse("http://user:s3cret@eureka:port/eureka")
        assert "s3cret" not in str(caught.value)

    @pytest.mark.parametrize(
        "password", ["s3/cret@", "s3#cret@x", "s3?cret@x", "1/s3@cret", "s3%0Acret"]
    )
    def test_a_password_that_is_not_encoded_is_refused_and_not_shown(self, password: str) -> None:
        """A character of the password breaks the URL. The error does not quote the URL."""
        with pytest.raises(ConfigurationError) as caught:
            EurekaAddress.parse(f"http://user:{password}@eureka:8761/eureka")
        assert "s3" not in str(caught.value)
        assert "cret" not in str(caught.value)

    @pytest.mark.parametrize(
        "path", ["/eureka/apps", "/eureka/apps/", "/eureka/v2/apps", "/eureka/apps/delta"]
    )
    def test_a_path_of_the_list_is_refused(self, path: str) -> None:
        """A person copies it from a browser. Each call adds `/apps` by itself."""
        with pytest.raises(ConfigurationError, match="leave out /apps"):
            EurekaAddress.parse(f"http://eureka:8761{path}")
        assert EurekaAddress.parse("http://gateway/apps/eureka").url == "http://gateway/apps/eureka"

    def test_an_ipv6_host_keeps_its_brackets(self) -> None:
        assert (
            EurekaAddress.parse("http://[fd00::1]:8761/eureka").url
            == "http://[fd00::1]:8761/eureka"
        )


class TestLists:
    @pytest.mark.parametrize(
        ("answer", "cause", "sentence"),
        [
            (HTML, Cause.UNUSABLE, "web page instead of JSON"),
            (Response(status=200), Cause.UNUSABLE, "empty body"),
            (Response(status=204), Cause.UNUSABLE, "204"),
            (Response(status=200, body=b"  \n"), Cause.UNUSABLE, "empty body"),
            (Response(status=200, body=EMPTY[:-5]), Cause.UNUSABLE, "not complete JSON"),
            (Response(status=200, body=b"{}"), Cause.UNUSABLE, "not a registry"),
            (Response(status=200, body=b'{"applications":null}'), Cause.UNUSABLE, "not a registry"),
            (
                Response(status=200, body=b"<applications/>", content_type="application/xml"),
                Cause.UNUSABLE,
                "xml",
            ),
            (
                Response(status=200, body=b"OK", content_type="text/plain"),
                Cause.UNUSABLE,
                "text/plain",
            ),
            (Response(status=401), Cause.DENIED, "give user and password"),
            (Response(status=403), Cause.DENIED, "no right to read"),
            (Response(status=407), Cause.DENIED, "a proxy in between asks for a login"),
            (Response(status=404, body=b'{"status":404}'), Cause.UNUSABLE, "another path there"),
            (
                Response(status=404, body=b"<html>", content_type="text/html"),
                Cause.UNUSABLE,
                "another path there",
            ),
            (
                Response(status=302, headers={"Location": "https://sso/login?u=x"}),
                Cause.DENIED,
                "login page",
            ),
            (
                Response(status=301, headers={"Location": "https://e/eureka/apps"}),
                Cause.UNUSABLE,
                "final URL",
            ),
            (Response(status=500, body=b"{}"), Cause.UNAVAILABLE, "500"),
            (Response(status=503), Cause.UNAVAILABLE, "503"),
            (Response(status=418), Cause.UNUSABLE, "418"),
            (TimeoutError(), Cause.UNAVAILABLE, "no answer in time"),
            (ConnectionRefusedError(), Cause.UNAVAILABLE, "refused"),
        ],
    )
    def test_an_answer_that_is_no_list_is_unknown(
        self, answer: Response | Exception, cause: Cause, sentence: str
    ) -> None:
        """An answer that is no registry makes the list Unknown, with a cause and a sentence. A list
        never raises."""
        source = connect(answer)[0].list_instances()
        assert isinstance(source, Unknown)
        assert source.cause is cause
        assert sentence in source.message
        assert not source.message.endswith((".", "?"))

    def test_a_403_of_the_list_alone_means_warm_up(self) -> None:
        """A server that has just started refuses the list with 403. It answers another read with
        404."""
        source = connect(Response(status=403), Response(status=404))[0].list_instances()
        assert isinstance(source, Unknown)
        assert (source.cause, "5 minutes" in source.message) == (Cause.UNAVAILABLE, True)

    def test_a_refused_login_is_distinguished_from_a_missing_one(self) -> None:
        """A 401 despite a login says that the login is wrong. The sentence does not repeat the
        login."""
        source = connect(Response(status=401), url="http://sync:s3cret@eureka/eureka")[
            0
        ].list_instances()
        assert isinstance(source, Unknown)
        assert "refuses this user or password" in source.message
        assert "s3cret" not in source.message

    def test_only_a_url_that_lacks_it_is_asked_for_its_path(self) -> None:
        """The advice is useless for a URL that ends in /eureka."""
        for url, asked in (("http://eureka:8761", True), ("http://eureka:8761/eureka/v2", False)):
            source = connect(Response(status=404, body=b"{}"), url=url)[0].list_instances()
            assert isinstance(source, Unknown)
            assert ("check that the URL ends in /eureka" in source.message) is asked

    def test_the_error_for_a_redirect_shows_no_secret(self) -> None:
        """Query and user of the redirect's target are left out."""
        headers = {"Location": "https://me:s3cret@sso/login?token=s3cret"}
        source = connect(Response(status=302, headers=headers))[0].list_instances()
        assert isinstance(source, Unknown)
        assert "s3cret" not in source.message

    def test_an_answer_has_a_size_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The limit applies to the unzipped answer. A larger one is Unknown."""
        monkeypatch.setattr(tries, "LARGEST", 2**20)
        big = gzip.compress(EMPTY + b" " * 5_000_000)
        zipped = Response(status=200, body=big, headers={"Content-Encoding": "gzip"})
        source = connect(zipped)[0].list_instances()
        assert isinstance(source, Unknown)
        assert "more than 1 MB" in source.message

    @pytest.mark.parametrize(
        ("body", "cause", "calls"),
        [
            pytest.param(gzip.compress(EMPTY)[:40], Cause.UNUSABLE, 1, id="cut"),
            pytest.param(EMPTY, Cause.UNAVAILABLE, 3, id="not zipped at all"),
        ],
    )
    def test_damaged_compression_is_unknown(self, body: bytes, cause: Cause, calls: int) -> None:
        """The answer's header says gzip, but its body is cut or is not zipped."""
        client, server = connect(
            Response(status=200, body=body, headers={"Content-Encoding": "gzip"})
        )
        source = client.list_instances()
        assert isinstance(source, Unknown)
        assert (source.cause, len(server.requests)) == (cause, calls)

    def test_malformed_instances_of_others_are_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A malformed instance of another owner is a warning. The list is still Complete."""
        instance = {"instanceId": "dc:a:1", "app": "A", "port": 8080}
        body = json.dumps(
            {"applications": {"application": [{"name": "A", "instance": [instance]}]}}
        ).encode()
        client = EurekaClient(
            ConnectionOptions(address=EurekaAddress.parse("http://eureka/eureka")),
            clock=Clock(),
            random=Highest(),
            adapter=InProcessAdapter(Server([Response(status=200, body=body)]).handle),
        )
        source = client.list_instances()
        assert isinstance(source, Complete)
        assert [one.key for one in source.data] == [InstanceKey("A", "dc:a:1")]
        assert caplog.messages == [
            "1 instance in Eureka, not ours, cannot be read completely: A/dc:a:1"
        ]


class TestWrites:
    @pytest.mark.parametrize("body", [b"", b'{"status":404}'])
    def test_eurekas_404_is_no_error(self, body: bytes) -> None:
        """A 404 with a JSON body, or without one, means that the instance does not exist."""
        client, _ = connect(Response(status=404, body=body))
        assert client.renew(KEY) is False
        assert client.cancel(KEY) is False
        assert client.read_instance(KEY) is None

    @pytest.mark.parametrize(
        "answer",
        [
            HTML,
            Response(status=404, body=b"404 page not found", content_type="text/plain"),
            Response(status=404, body=b"<html>404</html>", content_type="text/html"),
            Response(status=202),
            Response(status=302, headers={"Location": "/elsewhere"}),
            Response(status=405),
        ],
    )
    def test_a_proxys_answer_is_neither_done_nor_absent(self, answer: Response) -> None:
        """A web page, a proxy's 404, a redirect or an unexpected success is an error for every
        call."""
        client, _ = connect(answer)
        calls: list[Callable[[], object]] = [
            lambda: client.renew(KEY),
            lambda: client.cancel(KEY),
            lambda: client.read_instance(KEY),
            lambda: client.register(INSTANCE, dirty_timestamp=1),
        ]
        for call in calls:
            assert type(error_of(call)) is RegistryUnusable

    @pytest.mark.parametrize("status", [400, 500])
    def test_a_refused_instance_is_rejected(self, status: int) -> None:
        """A 400 or 500 for a registration concerns this instance. The error quotes the start of the
        server's complaint."""
        client, _ = connect(Response(status=status, body=b"Missing ip address" + b"x" * 5000))
        error = error_of(lambda: client.register(INSTANCE, dirty_timestamp=1))
        assert isinstance(error, RegistryRejected)
        assert "Missing ip address" in str(error)
        assert len(str(error)) < 400

    @pytest.mark.parametrize("spring", [False, True], ids=["text", "Spring"])
    @pytest.mark.parametrize(
        "url", ["http://sync:s3cret@eureka/eureka", "http://eureka/eureka"], ids=["URL", "login"]
    )
    def test_a_login_that_the_server_repeats_is_not_shown(self, url: str, spring: bool) -> None:
        """The error hides our header and password, whatever the form of the refusal."""
        credentials = Credentials(user="sync", password="s3cret")
        sent = "Authorization: Basic " + base64.b64encode(b"sync:s3cret").decode()
        text = f"you sent {sent}, and s3cret is wrong"
        body = json.dumps({"error": "Bad Request", "message": text}) if spring else text
        client, _ = connect(
            Response(status=400, body=body.encode()), url=url, login=lambda: credentials
        )
        error = error_of(lambda: client.register(INSTANCE, dirty_timestamp=1))
        assert "you sent Authorization: Basic ***, and *** is wrong" in str(error)

    @pytest.mark.parametrize("spring", [False, True], ids=["text", "Spring"])
    @pytest.mark.parametrize(
        ("blank", "length"), [(" ", 4096), ("\u3000", 4096), ("\u3000", 4096 // 3)]
    )
    def test_a_part_of_a_login_is_not_shown_either(
        self, spring: bool, blank: str, length: int
    ) -> None:
        """The password is cut at the end of the part that is read. White space before it is not
        shown."""
        credentials = Credentials(user="sync", password="s3cret-s3cret")
        text = f"no{blank * (length - 5)}s3cret-s3cret"
        body = json.dumps({"error": "Bad Request", "message": text}) if spring else text
        client, _ = connect(Response(status=400, body=body.encode()), login=lambda: credentials)
        assert "s3c" not in str(error_of(lambda: client.register(INSTANCE, dirty_timestamp=1)))

    @pytest.mark.parametrize("spring", [False, True], ids=["text", "Spring"])
    def test_control_characters_are_written_out(self, spring: bool) -> None:
        """The refusal holds an escape sequence, a bell, a C1 control and a direction override."""
        text = "\x1b[2J\x07 \x9b31m \u202eowned"
        body = json.dumps({"error": "Bad Request", "message": text}) if spring else text
        client, _ = connect(Response(status=400, body=body.encode()))
        error = error_of(lambda: client.register(INSTANCE, dirty_timestamp=1))
        assert r"(\x1b[2J\x07 \x9b31m \u202eowned)" in str(error)

    @pytest.mark.parametrize("header", ["content_type", "Location"])
    def test_a_header_is_written_out_too(self, header: str) -> None:
        """A server may put control characters into a content type or a redirect's target."""
        odd = "\x1b]0;owned\x07"
        answers = {
            "content_type": Response(status=200, body=b"x", content_type=odd),
            "Location": Response(status=301, headers={"Location": f"http://e/{odd}"}),
        }
        source = connect(answers[header])[0].list_instances()
        assert isinstance(source, Unknown)
        assert r"\x1b]0;owned\x07" in source.message

    @pytest.mark.parametrize(
        ("message", "told"), [("", "Bad Request"), ("Missing ip address", "Missing ip address")]
    )
    def test_a_refusal_is_reported_without_its_time(self, message: str, told: str) -> None:
        """Spring's error bodies hold a timestamp. Without it, two equal refusals give the same
        sentence."""
        body = {
            "timestamp": "2026-11-21T08:00:06Z",
            "status": 400,
            "error": "Bad Request",
            "message": message,
        }
        client, _ = connect(Response(status=400, body=json.dumps(body).encode()))
        error = error_of(lambda: client.register(INSTANCE, dirty_timestamp=1))
        assert str(error).endswith(f"Eureka refuses the instance ({told})")

    @pytest.mark.parametrize(
        ("status", "url"),
        [(403, "http://eureka/eureka"), (401, "http://sync:s3cret@eureka/eureka")],
    )
    def test_a_refused_write_where_reads_work_speaks_of_csrf(self, status: int, url: str) -> None:
        """A 403, or a 401 despite a login that may read, names CSRF protection and the fix. One
        read is made to tell the two cases apart."""
        client, server = connect(
            Response(status=status), Response(status=404), Response(status=status), url=url
        )
        for _ in range(3):
            error = error_of(lambda: client.renew(KEY))
            assert isinstance(error, RegistryDenied)
            assert "CSRF protection refuses writes. Turn it off for Eureka's paths" in str(error)
            assert 'csrf.ignoringRequestMatchers("/eureka/**")) from Spring Boot 3 on' in str(error)
            assert 'http.csrf().ignoringAntMatchers("/eureka/**") before it' in str(error)
        assert [request.method for request in server.requests] == ["PUT", "GET", "PUT", "PUT"]

    def test_a_refused_write_where_reads_fail_too_is_the_login(self) -> None:
        """If reads fail too, the error does not mention CSRF protection."""
        error = error_of(
            lambda: connect(Response(status=401), url="http://sync:s3cret@eureka/eureka")[0].renew(
                KEY
            )
        )
        assert "refuses this user or password" in str(error)
        error = error_of(lambda: connect(Response(status=403, body=b"{}"))[0].renew(KEY))
        assert "no right to use Eureka" in str(error)

    def test_another_instance_than_asked_is_unusable(self) -> None:
        """A read that returns another instance shows a broken cache."""
        body = json.dumps({"instance": {"instanceId": "other", "app": "RATING"}}).encode()
        error = error_of(lambda: connect(Response(status=200, body=body))[0].read_instance(KEY))
        assert isinstance(error, RegistryUnusable)


class TestWritesThatProveNothing:
    """Eureka answers a renewal and a cancel with a 200 without a body, or a 404."""

    @pytest.mark.parametrize("write", ["renew", "cancel"])
    @pytest.mark.parametrize(
        ("answer", "sentence"),
        [
            (Response(status=200, body=b"{}"), "a body, which Eureka's answer to a write has not"),
            (
                Response(status=200, body=b"null"),
                "a body, which Eureka's answer to a write has not",
            ),
            (
                Response(status=200, body=b"OK", content_type="text/plain"),
                "a body, which Eureka's answer",
            ),
            (HTML, "a web page instead of JSON"),
            (Response(status=204), "was answered 204, which Eureka does not do here"),
            (Response(status=200), "and so is the renewal of an instance that cannot exist"),
        ],
        ids=["object", "null", "text", "page", "204", "empty"],
    )
    def test_an_answer_to_everything_renews_nothing(
        self, write: str, answer: Response, sentence: str
    ) -> None:
        """Something gives this answer to every call, and so to a list, which Eureka never answers
        so."""
        client, _ = connect(answer, agrees=True)
        assert isinstance(client.list_instances(), Unknown)
        for _ in range(2):
            error = error_of(lambda: getattr(client, write)(KEY))
            assert isinstance(error, RegistryUnusable)
            assert sentence in str(error)

    def test_a_server_that_gives_a_list_is_not_asked(self) -> None:
        """The list shows that it is Eureka. A renewal stays one call."""
        client, server = connect(
            Response(status=200, body=EMPTY), Response(status=200), agrees=True
        )
        client.list_instances()
        assert client.renew(KEY)
        assert client.renew(KEY)
        assert [one.method for one in server.requests] == ["GET", "PUT", "PUT"]

    @pytest.mark.parametrize(
        "lists",
        [
            Response(status=500),
            Response(status=200, body=b"{}"),
            Response(status=200),
            TimeoutError(),
        ],
        ids=str,
    )
    def test_without_a_list_one_question_is_enough(self, lists: Response | Exception) -> None:
        """Eureka's writes may work while its lists fail. The question is asked once, until the next
        list."""
        answers = [lists] * (3 if isinstance(lists, TimeoutError) else 1)
        client, server = connect(
            *answers, Response(status=200), Response(status=404), Response(status=200), agrees=True
        )
        assert isinstance(client.list_instances(), Unknown)
        assert client.renew(KEY)
        assert client.renew(KEY)
        assert [(one.method, one.path) for one in server.requests[len(answers) :]].count(
            NOBODY
        ) == 1
        server.answers = [Response(status=200, body=b"[]"), Response(status=200)]
        assert isinstance(client.list_instances(), Unknown)
        assert "cannot exist" in str(error_of(lambda: client.renew(KEY)))

    @pytest.mark.parametrize("status", [500, 403])
    def test_a_question_without_an_answer_judges_nothing(self, status: int) -> None:
        """The next write asks again."""
        client, server = connect(
            Response(status=200),
            Response(status=status),
            Response(status=200),
            Response(status=404),
            agrees=True,
        )
        assert client.renew(KEY)
        assert client.renew(KEY)
        assert [(one.method, one.path) for one in server.requests].count(NOBODY) == 2

    def test_json_that_is_no_object_is_called_json(self) -> None:
        """The sentence does not say that JSON came in place of JSON."""
        for body in (b"null", b"[]", b"7"):
            source = connect(Response(status=200, body=body))[0].list_instances()
            assert isinstance(source, Unknown)
            assert "with JSON that is no object: another program answers" in source.message


PAGE_404 = Response(
    status=404,
    body=b"<html>no such page</html>",
    content_type="text/html",
    headers={"Server": "nginx/1.22.1"},
)
CALLS: dict[str, Callable[[EurekaClient], object]] = {
    "read": lambda client: client.read_instance(KEY),
    "renew": lambda client: client.renew(KEY),
    "cancel": lambda client: client.cancel(KEY),
}


def batch_of_one(code: int) -> Response:
    return Response(status=200, body=json.dumps({"responseList": [{"statusCode": code}]}).encode())


class TestProxies:
    @pytest.mark.parametrize("call", CALLS)
    def test_behind_a_page_for_every_404_a_batch_shows_absence(self, call: str) -> None:
        """A proxy puts its own page in place of Eureka's 404. A batch has the 404 in its body."""
        client, server = connect(PAGE_404, batch_of_one(404))
        assert not CALLS[call](client)
        assert [request.path for request in server.requests][1:] == [
            "/eureka/peerreplication/batch/"
        ]
        sent = json.loads(server.requests[1].body)["replicationList"]
        assert [item["id"] for item in sent] == [KEY.id]
        assert [item["action"] for item in sent] == [
            "Heartbeat" if call == "renew" else "StatusUpdate"
        ]

    @pytest.mark.parametrize("call", CALLS)
    @pytest.mark.parametrize(
        "second", [batch_of_one(200), batch_of_one(500), PAGE_404, Response(status=403)], ids=str
    )
    def test_a_page_alone_shows_no_absence(self, second: Response, call: str) -> None:
        """The batch shows the instance, or does not get through. The sentence names the proxy and
        the fix."""
        client, _ = connect(PAGE_404, second)
        error = error_of(lambda: CALLS[call](client))
        assert isinstance(error, RegistryUnusable)
        assert "404 by a proxy (nginx/1.22.1), which hides whether Eureka has the instance" in str(
            error
        )
        assert "proxy_intercept_errors" in str(error)

    @pytest.mark.parametrize(
        ("answer", "who"),
        [
            (
                Response(
                    status=403,
                    body=b"<html>",
                    content_type="text/html",
                    headers={"Server": "nginx"},
                ),
                "(nginx)",
            ),
            (
                Response(status=403, body=b"RBAC: access denied", content_type="text/plain"),
                "a proxy or firewall",
            ),
        ],
        ids=["page", "text"],
    )
    def test_a_403_of_a_proxy_is_not_taken_for_csrf(self, answer: Response, who: str) -> None:
        """Spring's 403 is JSON or has no body. A proxy lets only reads pass."""
        client, server = connect(Response(status=200, body=EMPTY), answer)
        client.list_instances()
        error = error_of(lambda: client.renew(KEY))
        assert isinstance(error, RegistryDenied)
        assert f"{who}, not by Eureka: let it pass PUT, POST and DELETE to Eureka's paths" in str(
            error
        )
        assert "CSRF" not in str(error)
        assert len(server.requests) == 2
        source = connect(answer, Response(status=404))[0].list_instances()
        assert isinstance(source, Unknown)
        assert "not by Eureka: let it pass GET" in source.message

    def test_a_403_without_a_body_through_a_proxy_may_be_of_either(self) -> None:
        """A proxy puts its name on Eureka's answers as well."""
        client, _ = connect(Response(status=403, headers={"Server": "envoy"}), Response(status=404))
        said = str(error_of(lambda: client.renew(KEY)))
        assert "CSRF protection refuses writes" in said
        assert "or a proxy (envoy) lets no writes pass" in said

    def test_csrf_is_found_where_a_proxy_hides_the_404_of_the_question(self) -> None:
        """The list has shown that reads work."""
        forbidden = Response(status=403, body=b'{"status":403,"error":"Forbidden"}')
        client, _ = connect(Response(status=200, body=EMPTY), forbidden, PAGE_404)
        client.list_instances()
        assert "CSRF protection refuses writes" in str(error_of(lambda: client.renew(KEY)))
        other, _ = connect(forbidden, PAGE_404)
        assert "no right to use Eureka" in str(error_of(lambda: other.renew(KEY)))

    @pytest.mark.parametrize(
        ("answer", "batch", "said"),
        [
            (Response(status=400, body=b"Missing hostname"), None, None),
            (
                Response(status=400, body=b"<html>", content_type="text/html"),
                batch_of_one(404),
                None,
            ),
            (
                Response(status=400, body=b"<html>", content_type="text/html"),
                batch_of_one(200),
                "a web page",
            ),
            (
                Response(status=404, body=b'{"status":404}'),
                Response(status=404),
                "404 although reads work",
            ),
            (
                Response(status=403, body=b"<html>", content_type="text/html"),
                None,
                "403 by a proxy",
            ),
            (Response(status=204), None, "204, which Eureka does not do here"),
            (Response(status=200, body=b"{}"), None, "200, which Eureka does not do here"),
        ],
        ids=["eureka", "page-batch", "page", "404", "403", "204", "200"],
    )
    def test_a_registration_without_a_host_name_shows_whether_writes_arrive(
        self, answer: Response, batch: Response | None, said: str | None
    ) -> None:
        """Eureka refuses it in its own way. A page may stand in place of that, if a batch gets
        through."""
        client, server = connect(answer, *([batch] if batch else []))
        if said is None:
            client.try_registration()
        else:
            assert said in str(error_of(client.try_registration))
        body = json.loads(server.requests[0].body)["instance"]
        assert body == {"instanceId": "eurekube-sync-probe", "app": "EUREKUBE-SYNC-PROBE"}

    def test_a_404_of_a_registration_is_never_eurekas(self) -> None:
        """Where reads work, the URL is right. Where they do not, it may be wrong."""
        missing = Response(status=404, body=b'{"status":404}')
        said = str(error_of(lambda: connect(missing)[0].register(INSTANCE, dirty_timestamp=1)))
        assert "a proxy or another program answers writes in Eureka's place" in said
        said = str(error_of(lambda: connect(PAGE_404)[0].register(INSTANCE, dirty_timestamp=1)))
        assert "was not found: Eureka is at another path there" in said


class TestRetries:
    @pytest.mark.parametrize(
        "failure",
        [
            TimeoutError(),
            ConnectionResetError(),
            *(Response(status=status) for status in (429, 502, 503, 504)),
        ],
        ids=str,
    )
    def test_a_transient_failure_is_tried_again(self, failure: Response | Exception) -> None:
        """The call is repeated after a wait. This also holds for a POST, which is idempotent
        here."""
        clock = Clock()
        client, server = connect(failure, failure, Response(status=204), clock=clock)
        client.register(INSTANCE, dirty_timestamp=1)
        assert len(server.requests) == 3
        assert clock.slept == [0.25, 0.5]
        assert server.requests[0].body == server.requests[2].body

    @pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 500])
    def test_a_final_answer_is_not_repeated(self, status: int) -> None:
        """A repetition would give the same answer."""
        clock = Clock()
        client, server = connect(Response(status=status), clock=clock)
        with contextlib.suppress(RegistryError):
            client.renew(KEY)
        assert ([request.method for request in server.requests].count("PUT"), clock.slept) == (
            1,
            [],
        )

    def test_after_the_last_try_it_is_unavailable(self) -> None:
        """The error says how the tries failed."""
        client, server = connect(ConnectionRefusedError())
        error = error_of(lambda: client.renew(KEY))
        assert isinstance(error, RegistryUnavailable)
        assert "the connection was refused" in str(error)
        assert len(server.requests) == 3

    def test_retry_after_is_waited_for(self) -> None:
        """`Retry-After`, in seconds or as a date, is the shortest wait."""
        clock = Clock(time=1_795_248_000.0)
        date = "Sat, 21 Nov 2026 08:00:06 GMT"
        busy = Response(status=429, headers={"Retry-After": "3"})
        later = Response(status=503, headers={"Retry-After": date})
        connect(busy, Response(status=200), clock=clock)[0].renew(KEY)
        assert clock.slept == [3.0]
        dated = Clock(time=1_795_248_000.0)
        connect(later, Response(status=200), clock=dated)[0].renew(KEY)
        assert dated.slept == [6.0]

    def test_a_long_retry_after_is_not_waited_for(self) -> None:
        """A `Retry-After` beyond the limit ends the call."""
        clock = Clock()
        client, server = connect(Response(status=429, headers={"Retry-After": "3600"}), clock=clock)
        assert isinstance(error_of(lambda: client.renew(KEY)), RegistryUnavailable)
        assert (len(server.requests), clock.slept) == (1, [])

    def test_nothing_is_repeated_when_the_program_stops(self) -> None:
        """After SIGTERM no further try begins."""
        clock = Clock(stopped=True)
        client, server = connect(TimeoutError(), clock=clock)
        error_of(lambda: client.renew(KEY))
        assert (len(server.requests), clock.slept) == (1, [])

    def test_a_wait_has_full_jitter(self) -> None:
        """The wait is a random part of a limit that grows."""

        class Low:
            def random(self) -> float:
                return 0.1

        clock = Clock()
        client = EurekaClient(
            ConnectionOptions(address=EurekaAddress.parse("http://eureka/eureka"), retries=3),
            clock=clock,
            random=Low(),
            adapter=InProcessAdapter(Server([TimeoutError()]).handle),
        )
        error_of(lambda: client.renew(KEY))
        assert clock.slept == pytest.approx([0.025, 0.05, 0.1])
