"""What a Eureka server does, as far as this program relies on it: one suite, on the embedded and on
the real server.

Each docstring is a fact of the real server; a test that fails on `embedded` only is a bug of the
embedded one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.contract.eureka_subject import (
    JSON,
    Document,
    EurekaSubject,
    embedded,
    embedded_guarded,
    instance_body,
    real,
    real_guarded,
    timed,
)
from tests.contract.otherwise import Otherwise
from tests.embedded.eureka import OF_A_PEER

SERVERS = ["embedded", pytest.param("real", marks=pytest.mark.servers)]
_numbers = itertools.count(1)


@pytest.fixture(scope="module", params=SERVERS)
def fast_server(request: pytest.FixtureRequest) -> Iterator[EurekaSubject]:
    """A server with 1 s cache and eviction and no self-preservation."""
    if request.param == "embedded":
        with embedded(stock=False) as subject:
            yield subject
    else:
        yield real(request.getfixturevalue("eureka_fast").url, stock=False)


@pytest.fixture(scope="module", params=SERVERS)
def stock_server(request: pytest.FixtureRequest) -> Iterator[EurekaSubject]:
    """A server as it comes: 30 s cache, 60 s eviction, self-preservation."""
    if request.param == "embedded":
        with embedded(stock=True) as subject:
            yield subject
    else:
        yield real(request.getfixturevalue("eureka_stock").url, stock=True)


@pytest.fixture
def app() -> str:
    """An application name that no other test uses."""
    return f"APP{next(_numbers)}"


@pytest.fixture(scope="module", params=SERVERS)
def guarded_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server that asks for user `sync` and password `secret`, and is warming up: it found no peer
    to copy from."""
    with (embedded_guarded if request.param == "embedded" else real_guarded)(
        "sync", "secret"
    ) as url:
        yield url


def _cleaning(subject: EurekaSubject) -> Iterator[EurekaSubject]:
    yield subject
    subject.forget()


@pytest.fixture
def eureka(fast_server: EurekaSubject) -> Iterator[EurekaSubject]:
    yield from _cleaning(fast_server)


@pytest.fixture
def real_eureka(eureka_fast: Any) -> Iterator[EurekaSubject]:
    """For what the embedded server does not do: XML, VIPs, and metadata that is added by a PUT."""
    yield from _cleaning(real(eureka_fast.url, stock=False))


@pytest.fixture
def stock_eureka(stock_server: EurekaSubject) -> Iterator[EurekaSubject]:
    yield from _cleaning(stock_server)


def register(subject: EurekaSubject, app: str, number: int = 0, **changes: object) -> str:
    """Register one instance, asserting that it was accepted; return its id."""
    instance_id = f"{app.lower()}-{number}"
    answer = subject.post(app, instance_body(app, instance_id, **changes))
    assert (answer.status_code, answer.content) == (204, b"")
    return instance_id


class TestRegister:
    def test_an_instance_that_was_posted_can_be_read_at_once(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """A POST answers 204 with no body, and the uncached read shows the instance at once."""
        instance_id = register(eureka, app)
        assert eureka.instance(app, instance_id)["status"] == "UP"

    def test_left_out_fields_get_defaults(self, eureka: EurekaSubject, app: str) -> None:
        """Port, VIP, status and lease may be left out: ports 7001 and 7002, UP, 30 s and 90 s."""
        names = ("port", "securePort", "vipAddress", "secureVipAddress", "status", "leaseInfo")
        seen = eureka.instance(app, register(eureka, app, 0, **dict.fromkeys(names)))
        assert seen["port"] == {"$": 7001, "@enabled": "true"}
        assert seen["securePort"] == {"$": 7002, "@enabled": "false"}
        assert seen["status"] == "UP"
        assert "vipAddress" not in seen
        assert (
            seen["leaseInfo"]["renewalIntervalInSecs"],
            seen["leaseInfo"]["durationInSecs"],
        ) == (30, 90)

    @pytest.mark.parametrize(
        "changes",
        [
            pytest.param({"hostName": None}, id="no hostName"),
            pytest.param({"ipAddr": None}, id="no ipAddr"),
            pytest.param({"ipAddr": ""}, id="empty ipAddr"),
            pytest.param({"app": None}, id="no app"),
            pytest.param({"app": "ANOTHER"}, id="another app than the path"),
            pytest.param({"instanceId": "", "hostName": ""}, id="no id and no hostName"),
            pytest.param({"dataCenterInfo": None}, id="no dataCenterInfo"),
            pytest.param({"dataCenterInfo": {"name": "MyOwn"}}, id="no @class"),
            pytest.param(
                {
                    "dataCenterInfo": {
                        "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo"
                    }
                },
                id="no data center name",
            ),
            pytest.param(
                {
                    "dataCenterInfo": {
                        "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
                        "name": "MyOwn",
                        "region": "x",
                    }
                },
                id="another key in dataCenterInfo",
            ),
            pytest.param({"port": 8080}, id="scalar port"),
        ],
    )
    def test_a_body_with_a_missing_or_malformed_field_is_refused(
        self, eureka: EurekaSubject, app: str, changes: Document
    ) -> None:
        """A body without a required field, or with a structure that Jackson does not expect, is a
        400."""
        answer = eureka.post(app, instance_body(app, f"{app.lower()}-0", **changes))
        assert answer.status_code == 400
        assert eureka.get(f"/apps/{app}/{app.lower()}-0").status_code == 404

    @pytest.mark.parametrize(
        "changes",
        [
            pytest.param(
                {"port": {"$": 8080, "@enabled": "true", "name": "http"}}, id="another key in port"
            ),
            pytest.param({"metadata": {"a": {"b": "c"}}}, id="nested metadata"),
        ],
    )
    def test_a_body_with_more_than_there_should_be_is_refused(
        self, eureka: EurekaSubject, app: str, changes: Document
    ) -> None:
        """An unknown key in a structure is a 400."""
        answer = eureka.post(app, instance_body(app, f"{app.lower()}-0", **changes))
        expected = 204 if Otherwise.LENIENT_BODY in eureka.otherwise else 400
        assert answer.status_code == expected

    @pytest.mark.parametrize(
        "body", ["", "{", "{}", "[]", '{"application":{}}', '{"instance":{}}', "<html></html>"]
    )
    def test_a_body_that_is_no_instance_is_refused(
        self, eureka: EurekaSubject, app: str, body: str
    ) -> None:
        """A body that cannot be parsed, or has another root, is a 400. (`{"instance":[]}` would
        hang the server.)"""
        assert eureka.post(app, body).status_code == 400

    def test_the_refusal_names_the_missing_field(self, eureka: EurekaSubject, app: str) -> None:
        """The 400 for a missing field says in its body which one."""
        answer = eureka.post(app, instance_body(app, f"{app.lower()}-0", ipAddr=None))
        assert answer.text == "Missing ip address"

    def test_the_app_name_is_upper_cased(self, eureka: EurekaSubject, app: str) -> None:
        """The app name is upper-cased in the path and in the body."""
        answer = eureka.post(app.lower(), instance_body(app.lower(), f"{app.lower()}-0"))
        assert answer.status_code == 204
        assert eureka.instance(app, f"{app.lower()}-0")["app"] == app
        assert eureka.instance(app.lower(), f"{app.lower()}-0")["app"] == app

    def test_a_blank_id_falls_back_to_the_host_name(self, eureka: EurekaSubject, app: str) -> None:
        """An instance without an id is known by its host name."""
        assert (
            eureka.post(app, instance_body(app, "", hostName=f"{app.lower()}-1")).status_code == 204
        )
        assert eureka.get(f"/apps/{app}/{app.lower()}-1").status_code == 200

    def test_a_host_name_is_accepted_as_an_address(self, eureka: EurekaSubject, app: str) -> None:
        """`ipAddr` is not checked to be an address."""
        seen = eureka.instance(
            app, register(eureka, app, ipAddr="lb.example.com", hostName="lb.example.com")
        )
        assert seen["ipAddr"] == "lb.example.com"

    @pytest.mark.parametrize("status", ["up", "Up"])
    def test_a_status_is_in_upper_case(self, eureka: EurekaSubject, app: str, status: str) -> None:
        """In another case it is UNKNOWN."""
        in_any_case = Otherwise.STATUS_IN_ANY_CASE in eureka.otherwise
        seen = eureka.instance(app, register(eureka, app, status=status))
        assert seen["status"] == ("UP" if in_any_case else "UNKNOWN")

    @pytest.mark.parametrize("status", ["READY", ""])
    def test_an_unknown_status_is_unknown(
        self, eureka: EurekaSubject, app: str, status: str
    ) -> None:
        """A status that is not one of the five becomes UNKNOWN; renew answers 404
        until a good POST."""
        instance_id = register(eureka, app, status=status)
        assert eureka.instance(app, instance_id)["status"] == "UNKNOWN"
        assert eureka.put(f"/apps/{app}/{instance_id}").status_code == 404
        register(eureka, app)
        assert eureka.put(f"/apps/{app}/{instance_id}").status_code == 200

    def test_null_fields_are_skipped(self, eureka: EurekaSubject, app: str) -> None:
        """A field that is null is as good as left out."""
        body = instance_body(app, f"{app.lower()}-0") | {
            "port": None,
            "metadata": None,
            "vipAddress": None,
        }
        assert eureka.post(app, body).status_code == 204
        assert eureka.instance(app, f"{app.lower()}-0")["port"]["$"] == 7001

    @pytest.mark.parametrize("number", [0, -5])
    def test_lease_values_that_are_not_positive_get_defaults(
        self, eureka: EurekaSubject, app: str, number: int
    ) -> None:
        """A renewal interval or duration of 0 or less becomes 30 and 90."""
        lease = {"renewalIntervalInSecs": number, "durationInSecs": number}
        seen = eureka.instance(app, register(eureka, app, leaseInfo=lease))
        assert (
            seen["leaseInfo"]["renewalIntervalInSecs"],
            seen["leaseInfo"]["durationInSecs"],
        ) == (30, 90)

    def test_ports_may_be_text_or_native(self, eureka: EurekaSubject, app: str) -> None:
        """`$` and `@enabled` are taken as text or native, and told as number and text."""
        native, text = {"$": 8080, "@enabled": True}, {"$": "8443", "@enabled": "true"}
        seen = eureka.instance(app, register(eureka, app, port=native, securePort=text))
        assert seen["port"] == {"$": 8080, "@enabled": "true"}
        assert seen["securePort"] == {"$": 8443, "@enabled": "true"}

    def test_metadata_values_become_text(self, eureka: EurekaSubject, app: str) -> None:
        """Metadata numbers and booleans become text, null becomes "null", and the key `@class` is
        dropped."""
        metadata = {"n": 7, "b": True, "none": None, "@class": "x", "a/b": "c", "unicode": "ü"}
        seen = eureka.instance(app, register(eureka, app, metadata=metadata))
        assert seen["metadata"] == {
            "n": "7",
            "b": "true",
            "none": "null",
            "a/b": "c",
            "unicode": "ü",
        }

    def test_an_older_post_is_ignored_with_a_204(self, eureka: EurekaSubject, app: str) -> None:
        """A POST with an older `lastDirtyTimestamp` answers 204 and changes nothing."""
        instance_id = register(eureka, app, lastDirtyTimestamp="2000000000000")
        register(
            eureka, app, lastDirtyTimestamp="1999999999999", status="DOWN", metadata={"new": "1"}
        )
        seen = eureka.instance(app, instance_id)
        assert (seen["status"], seen["metadata"]) == ("UP", {"eurekube.owner": "prod"})
        assert seen["lastDirtyTimestamp"] == "2000000000000"

    def test_a_post_with_an_equal_timestamp_replaces_the_instance(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """A POST with the stored `lastDirtyTimestamp` replaces the instance."""
        instance_id = register(eureka, app)
        register(eureka, app, status="DOWN", metadata={"new": "1"})
        seen = eureka.instance(app, instance_id)
        assert (seen["status"], seen["metadata"]) == ("DOWN", {"new": "1"})

    def test_a_post_without_timestamp_is_dated_by_the_server(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """Without `lastDirtyTimestamp` the server takes its own time, in milliseconds."""
        seen = eureka.instance(app, register(eureka, app, lastDirtyTimestamp=None))
        assert int(seen["lastDirtyTimestamp"]) == pytest.approx(eureka.now() * 1000, abs=60_000)

    def test_an_echoed_overridden_status_becomes_an_override(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """A POST that carries an `overriddenstatus` other than UNKNOWN sets the override: never
        echo it."""
        instance_id = register(eureka, app, overriddenstatus="OUT_OF_SERVICE")
        assert eureka.instance(app, instance_id)["status"] == "OUT_OF_SERVICE"

    def test_a_post_needs_a_content_type_of_json_or_xml(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """A POST with another content type than JSON or XML is a 415."""
        headers = {"Accept": "application/json", "Content-Type": "text/plain"}
        answer = requests.post(eureka.url(f"/apps/{app}"), data="{}", headers=headers, timeout=60)
        assert answer.status_code == 415

    def test_a_colon_in_an_id_may_be_raw_or_encoded(self, eureka: EurekaSubject, app: str) -> None:
        """An id with `:` is one path segment, raw or percent-encoded."""
        instance_id = f"prod:shop:{app.lower()}:fd00--1:8080"
        assert eureka.post(app, instance_body(app, instance_id)).status_code == 204
        assert eureka.put(f"/apps/{app}/{instance_id}").status_code == 200
        assert eureka.put(f"/apps/{app}/{instance_id.replace(':', '%3A')}").status_code == 200
        assert eureka.delete(f"/apps/{app}/{instance_id}").status_code == 200


class TestRenew:
    def test_a_lease_is_renewed_with_a_200(self, eureka: EurekaSubject, app: str) -> None:
        """PUT on a lease answers 200 with an empty body."""
        answer = eureka.put(f"/apps/{app}/{register(eureka, app)}")
        assert (answer.status_code, answer.content) == (200, b"")

    def test_without_a_lease_renew_is_a_404(self, eureka: EurekaSubject, app: str) -> None:
        """PUT on an unknown id, a known id in another app, or an id in other case, answers 404."""
        instance_id = register(eureka, app)
        for path in (
            f"/apps/{app}/nobody",
            f"/apps/{app}B/{instance_id}",
            f"/apps/{app}/{instance_id.upper()}",
        ):
            assert eureka.put(path).status_code == 404

    def test_a_newer_timestamp_is_a_404_that_renews(self, eureka: EurekaSubject, app: str) -> None:
        """PUT with a newer `lastDirtyTimestamp` answers 404, and renews the lease all the same."""
        instance_id = register(eureka, app)
        before = eureka.instance(app, instance_id)["leaseInfo"]["lastRenewalTimestamp"]
        assert (
            eureka.put(f"/apps/{app}/{instance_id}", lastDirtyTimestamp="1795248000786").status_code
            == 404
        )
        assert eureka.instance(app, instance_id)["leaseInfo"]["lastRenewalTimestamp"] > before

    def test_an_older_or_equal_timestamp_is_a_200(self, eureka: EurekaSubject, app: str) -> None:
        """PUT with an older or equal `lastDirtyTimestamp` answers 200."""
        instance_id = register(eureka, app)
        for sent in ("1795248000785", "1"):
            assert (
                eureka.put(f"/apps/{app}/{instance_id}", lastDirtyTimestamp=sent).status_code == 200
            )

    def test_a_peer_with_an_older_timestamp_gets_a_409_with_the_instance(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """A peer that sends an older `lastDirtyTimestamp` with a PUT gets 409 with the instance;
        an equal one is a 200, and a newer one a 404."""
        instance_id = register(eureka, app)
        url = eureka.url(f"/apps/{app}/{instance_id}")
        headers = JSON | {OF_A_PEER: "true"}

        def renewed(sent: str) -> requests.Response:
            query = {"lastDirtyTimestamp": sent}
            return requests.put(url, params=query, headers=headers, timeout=30)

        assert renewed("1795248000785").status_code == 200
        assert renewed("1795248000786").status_code == 404
        refused = renewed("1795248000784")
        assert refused.status_code == 409
        assert refused.json()["instance"]["lastDirtyTimestamp"] == "1795248000785"

    def test_the_status_of_a_renew_is_ignored(self, eureka: EurekaSubject, app: str) -> None:
        """PUT with `status=DOWN` leaves the status as it is."""
        instance_id = register(eureka, app)
        assert eureka.put(f"/apps/{app}/{instance_id}", status="DOWN").status_code == 200
        assert eureka.instance(app, instance_id)["status"] == "UP"

    def test_a_renew_does_not_change_the_time_of_the_last_update(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """A renew leaves `lastUpdatedTimestamp` alone, a POST of the same instance does not."""
        instance_id = register(eureka, app)
        registered = eureka.instance(app, instance_id)["lastUpdatedTimestamp"]
        eureka.wait(0.01)
        eureka.put(f"/apps/{app}/{instance_id}")
        assert eureka.instance(app, instance_id)["lastUpdatedTimestamp"] == registered
        register(eureka, app)
        assert eureka.instance(app, instance_id)["lastUpdatedTimestamp"] > registered

    def test_a_down_instance_is_renewed(self, eureka: EurekaSubject, app: str) -> None:
        """An instance that is DOWN is renewed with a 200 and stays DOWN."""
        instance_id = register(eureka, app, status="DOWN")
        assert eureka.put(f"/apps/{app}/{instance_id}").status_code == 200
        assert eureka.instance(app, instance_id)["status"] == "DOWN"


class TestCancel:
    def test_cancel_is_a_200_and_then_a_404(self, eureka: EurekaSubject, app: str) -> None:
        """DELETE answers 200 once, then 404; the uncached read follows at once."""
        instance_id = register(eureka, app)
        assert eureka.delete(f"/apps/{app}/{instance_id}").status_code == 200
        assert eureka.get(f"/apps/{app}/{instance_id}").status_code == 404
        assert eureka.delete(f"/apps/{app}/{instance_id}").status_code == 404

    def test_cancel_forgets_a_timestamp(self, eureka: EurekaSubject, app: str) -> None:
        """After a DELETE an older POST is a new registration."""
        instance_id = register(eureka, app, lastDirtyTimestamp="2000000000000")
        eureka.delete(f"/apps/{app}/{instance_id}")
        register(eureka, app, lastDirtyTimestamp="1000000000000", status="DOWN")
        assert eureka.instance(app, instance_id)["status"] == "DOWN"

    def test_a_whole_app_cannot_be_cancelled(self, eureka: EurekaSubject, app: str) -> None:
        """DELETE of an application is refused."""
        register(eureka, app)
        assert eureka.delete(f"/apps/{app}").status_code == 405


class TestStatus:
    def test_a_post_changes_the_status_without_an_override(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """Without an override a POST of DOWN, then UP, is taken as it is."""
        instance_id = register(eureka, app)
        for status in ("DOWN", "UP", "STARTING", "UP"):
            register(eureka, app, status=status)
            assert eureka.instance(app, instance_id)["status"] == status

    def test_out_of_service_by_post_is_ignored(self, eureka: EurekaSubject, app: str) -> None:
        """A POST of OUT_OF_SERVICE over UP stays UP: an existing lease that is UP wins."""
        instance_id = register(eureka, app)
        register(eureka, app, status="OUT_OF_SERVICE")
        assert eureka.instance(app, instance_id)["status"] == "UP"

    def test_up_by_post_over_out_of_service_is_ignored(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """A POST of UP over an instance that registered as OUT_OF_SERVICE stays OUT_OF_SERVICE."""
        instance_id = register(eureka, app, status="OUT_OF_SERVICE")
        register(eureka, app)
        assert eureka.instance(app, instance_id)["status"] == "OUT_OF_SERVICE"

    def test_an_override_is_sticky(self, eureka: EurekaSubject, app: str) -> None:
        """After `PUT status?value=DOWN` a POST of UP stays DOWN, also after a renew."""
        instance_id = register(eureka, app)
        assert eureka.put(f"/apps/{app}/{instance_id}/status", value="DOWN").status_code == 200
        register(eureka, app)
        assert eureka.instance(app, instance_id)["status"] == "DOWN"
        eureka.put(f"/apps/{app}/{instance_id}")
        seen = eureka.instance(app, instance_id)
        assert (seen["status"], eureka.override(seen)) == ("DOWN", "DOWN")

    def test_a_persons_out_of_service_survives_our_writes(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """After `PUT status?value=OUT_OF_SERVICE` a POST of DOWN is DOWN, and one of UP is
        OUT_OF_SERVICE again."""
        instance_id = register(eureka, app)
        eureka.put(f"/apps/{app}/{instance_id}/status", value="OUT_OF_SERVICE")
        for sent, effective in (
            ("UP", "OUT_OF_SERVICE"),
            ("DOWN", "DOWN"),
            ("UP", "OUT_OF_SERVICE"),
        ):
            register(eureka, app, status=sent)
            seen = eureka.instance(app, instance_id)
            assert (seen["status"], eureka.override(seen)) == (effective, "OUT_OF_SERVICE")

    def test_cancel_forgets_an_override(self, eureka: EurekaSubject, app: str) -> None:
        """After a DELETE and a POST the override is gone."""
        instance_id = register(eureka, app)
        eureka.put(f"/apps/{app}/{instance_id}/status", value="OUT_OF_SERVICE")
        eureka.delete(f"/apps/{app}/{instance_id}")
        register(eureka, app)
        seen = eureka.instance(app, instance_id)
        assert (seen["status"], eureka.override(seen)) == ("UP", "UNKNOWN")

    def test_a_cancel_in_another_app_forgets_the_override_too(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """Overrides are kept by id alone: a DELETE of that id in an app without it is a 404 and
        forgets it."""
        instance_id = register(eureka, app)
        eureka.put(f"/apps/{app}/{instance_id}/status", value="OUT_OF_SERVICE")
        assert eureka.delete(f"/apps/{app}B/{instance_id}").status_code == 404
        register(eureka, app, status="DOWN")
        register(eureka, app)
        assert eureka.instance(app, instance_id)["status"] == "UP"

    def test_one_id_in_two_apps_shares_an_override(self, eureka: EurekaSubject, app: str) -> None:
        """An override on one app turns the same id in another app at its next renew."""
        instance_id = register(eureka, app)
        assert eureka.post(f"{app}B", instance_body(f"{app}B", instance_id)).status_code == 204
        eureka.put(f"/apps/{app}/{instance_id}/status", value="OUT_OF_SERVICE")
        assert eureka.instance(f"{app}B", instance_id)["status"] == "UP"
        eureka.put(f"/apps/{app}B/{instance_id}")
        assert eureka.instance(f"{app}B", instance_id)["status"] == "OUT_OF_SERVICE"

    def test_deleting_an_override_makes_the_status_unknown(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """`DELETE status` without a value gives UNKNOWN and a 404 to renew, until a POST."""
        instance_id = register(eureka, app)
        eureka.put(f"/apps/{app}/{instance_id}/status", value="OUT_OF_SERVICE")
        assert eureka.delete(f"/apps/{app}/{instance_id}/status").status_code == 200
        seen = eureka.instance(app, instance_id)
        assert (seen["status"], eureka.override(seen)) == ("UNKNOWN", "UNKNOWN")
        assert eureka.put(f"/apps/{app}/{instance_id}").status_code == 404
        register(eureka, app)
        assert eureka.instance(app, instance_id)["status"] == "UP"

    def test_deleting_an_override_with_a_value_sets_it(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """`DELETE status?value=UP` gives UP, and renew goes on."""
        instance_id = register(eureka, app)
        eureka.put(f"/apps/{app}/{instance_id}/status", value="OUT_OF_SERVICE")
        assert eureka.delete(f"/apps/{app}/{instance_id}/status", value="UP").status_code == 200
        assert eureka.instance(app, instance_id)["status"] == "UP"
        assert eureka.put(f"/apps/{app}/{instance_id}").status_code == 200

    def test_deleting_no_override_changes_nothing(self, eureka: EurekaSubject, app: str) -> None:
        """`DELETE status` on an instance without an override answers 200 and leaves its status."""
        instance_id = register(eureka, app)
        assert eureka.delete(f"/apps/{app}/{instance_id}/status").status_code == 200
        assert eureka.instance(app, instance_id)["status"] == "UP"

    def test_an_override_needs_an_instance_and_a_status(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """An override on nothing is a 404; a value that is no status, or none, is a 500."""
        assert eureka.put(f"/apps/{app}/nobody/status", value="DOWN").status_code == 404
        assert eureka.delete(f"/apps/{app}/nobody/status").status_code == 404
        instance_id = register(eureka, app)
        assert eureka.put(f"/apps/{app}/{instance_id}/status", value="ILL").status_code == 500
        assert eureka.put(f"/apps/{app}/{instance_id}/status").status_code == 500


class TestMetadata:
    @pytest.mark.servers
    def test_a_post_drops_metadata_that_was_added(
        self, real_eureka: EurekaSubject, app: str
    ) -> None:
        """A renew leaves it alone; a POST is the whole instance, and keeps nothing of what
        stood."""
        instance_id = register(real_eureka, app, metadata={"ours": "1"})
        real_eureka.put(f"/apps/{app}/{instance_id}/metadata", added="2", ours="3")
        assert real_eureka.put(f"/apps/{app}/{instance_id}").status_code == 200
        assert real_eureka.instance(app, instance_id)["metadata"] == {"ours": "3", "added": "2"}
        register(real_eureka, app, metadata={"ours": "1"})
        assert real_eureka.instance(app, instance_id)["metadata"] == {"ours": "1"}


class TestReads:
    def test_the_json_of_an_instance_has_a_fixed_form(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """The JSON of an instance has these fields, in these types."""
        urls = {
            "homePageUrl": "http://a/",
            "statusPageUrl": "http://a/s",
            "healthCheckUrl": "http://a/h",
        }
        seen = eureka.instance(app, register(eureka, app, 0, **urls))
        assert eureka.override(seen) == "UNKNOWN"
        seen = {name: seen[name] for name in seen if name.lower() != "overriddenstatus"}
        updated, lease = seen.pop("lastUpdatedTimestamp"), seen.pop("leaseInfo")
        assert isinstance(updated, str)
        assert seen == {
            "instanceId": f"{app.lower()}-0",
            "hostName": "10.1.2.3",
            "app": app,
            "ipAddr": "10.1.2.3",
            "status": "UP",
            "port": {"$": 8080, "@enabled": "true"},
            "securePort": {"$": 443, "@enabled": "false"},
            "countryId": 1,
            "dataCenterInfo": {
                "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
                "name": "MyOwn",
            },
            "metadata": {"eurekube.owner": "prod"},
            **urls,
            "vipAddress": app.lower(),
            "secureVipAddress": app.lower(),
            "isCoordinatingDiscoveryServer": "false",
            "lastDirtyTimestamp": "1795248000785",
            "actionType": "ADDED",
        }
        assert list(lease) == [
            "renewalIntervalInSecs",
            "durationInSecs",
            "registrationTimestamp",
            "lastRenewalTimestamp",
            "evictionTimestamp",
            "serviceUpTimestamp",
        ]
        assert (
            lease["renewalIntervalInSecs"],
            lease["durationInSecs"],
            lease["evictionTimestamp"],
        ) == (30, 300, 0)
        at = [lease[f"{what}Timestamp"] for what in ("registration", "lastRenewal", "serviceUp")]
        assert max(at) - min(at) < 50, "the server asks its clock once for each"

    def test_empty_metadata_is_shown_with_a_class(self, eureka: EurekaSubject, app: str) -> None:
        """An instance without metadata shows `@class` in its place."""
        seen = eureka.instance(app, register(eureka, app, metadata=None))
        assert seen["metadata"] == {"@class": "java.util.Collections$EmptyMap"}

    def test_last_renewal_lies_in_the_future(self, eureka: EurekaSubject, app: str) -> None:
        """After a renew `lastRenewalTimestamp` is now **plus** the duration: of no use to a
        reader."""
        instance_id = register(eureka, app)
        eureka.put(f"/apps/{app}/{instance_id}")
        told = eureka.instance(app, instance_id)["leaseInfo"]["lastRenewalTimestamp"]
        assert told == pytest.approx((eureka.now() + 300) * 1000, abs=60_000)

    def test_the_json_of_an_app_has_a_fixed_form(self, eureka: EurekaSubject, app: str) -> None:
        """`GET /apps/{APP}` is an application with an array of instances, also for one."""
        register(eureka, app)
        document = eureka.get(f"/apps/{app.lower()}").json()
        assert list(document) == ["application"]
        assert document["application"]["name"] == app
        assert [one["instanceId"] for one in document["application"]["instance"]] == [
            f"{app.lower()}-0"
        ]

    @timed
    def test_the_json_of_the_list_has_a_fixed_form(self, eureka: EurekaSubject, app: str) -> None:
        """`GET /apps` has version, hash code and arrays, also for one instance."""
        register(eureka, app)
        eureka.to_next_tick()
        applications = eureka.get("/apps").json()["applications"]
        assert list(applications) == ["versions__delta", "apps__hashcode", "application"]
        assert applications["versions__delta"] == "1"
        mine = [one for one in applications["application"] if one["name"] == app]
        assert [list(one) for one in mine] == [["name", "instance"]]
        assert len(mine[0]["instance"]) == 1

    @pytest.mark.servers
    @timed
    def test_the_hash_code_counts_statuses(self, real_eureka: EurekaSubject, app: str) -> None:
        """`apps__hashcode` is the number of instances of each status, in order of name."""
        register(real_eureka, app, 0)
        register(real_eureka, app, 1)
        register(real_eureka, app, 2, status="DOWN")
        real_eureka.to_next_tick()
        vips = real_eureka.get(f"/vips/{app.lower()}").json()["applications"]
        assert vips["apps__hashcode"] == "DOWN_1_UP_2_"

    @timed
    def test_an_empty_registry_is_an_empty_array(self, eureka: EurekaSubject, app: str) -> None:
        """A registry without instances is told as `application: []`, with an empty hash code."""
        eureka.to_next_tick()
        for each in eureka.get("/apps").json()["applications"][
            "application"
        ]:  # others' tests use the server, too
            for instance in each["instance"]:
                eureka.delete(f"/apps/{each['name']}/{instance['instanceId']}")
        eureka.to_next_tick()
        applications = eureka.get("/apps").json()["applications"]
        assert applications == {"versions__delta": "1", "apps__hashcode": "", "application": []}

    def test_an_instance_is_found_by_id_alone(self, eureka: EurekaSubject, app: str) -> None:
        """`GET /instances/{id}` reads past the cache, in the form of an instance; unknown is a
        404."""
        instance_id = f"{app.lower()}-0"
        assert eureka.get(f"/instances/{instance_id}").status_code == 404
        register(eureka, app)
        assert eureka.get(f"/instances/{instance_id}").json()["instance"]["app"] == app

    @pytest.mark.servers
    def test_a_vip_may_be_one_of_a_comma_list(self, real_eureka: EurekaSubject, app: str) -> None:
        """An instance with `vipAddress: "a,b"` is found under both names."""
        name = app.lower()
        register(real_eureka, app, vipAddress=f"{name}-a,{name}-b")
        for vip in (f"{name}-a", f"{name}-b"):
            found = real_eureka.get(f"/vips/{vip}").json()["applications"]["application"]
            assert [one["name"] for one in found] == [app]

    @pytest.mark.servers
    @pytest.mark.parametrize("accept", ["*/*", "application/xml"])
    def test_without_json_in_accept_the_answer_is_xml(
        self, real_eureka: EurekaSubject, app: str, accept: str
    ) -> None:
        """Unless `Accept` says JSON the list is XML."""
        register(real_eureka, app)
        answer = real_eureka.get("/apps", Accept=accept)
        assert answer.headers["Content-Type"].startswith("application/xml")
        assert answer.text.startswith("<applications>")

    @timed
    def test_lists_are_gzipped_when_asked(self, eureka: EurekaSubject, app: str) -> None:
        """`GET /apps` is gzipped when the caller takes it, and plain when not; one application
        never is."""
        register(eureka, app)
        zipped = eureka.get("/apps", **{"Accept-Encoding": "gzip"})
        plain = eureka.get("/apps", **{"Accept-Encoding": "identity"})
        assert zipped.headers.get("Content-Encoding") == "gzip"
        assert zipped.headers["Content-Type"].startswith("application/json")
        assert "Content-Encoding" not in plain.headers
        assert zipped.json() == plain.json()
        one = eureka.get(f"/apps/{app}", **{"Accept-Encoding": "gzip"})
        expected = "gzip" if Otherwise.ALL_GZIPPED in eureka.otherwise else None
        assert one.headers.get("Content-Encoding") == expected

    def test_a_trailing_slash_in_a_path_makes_no_difference(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """`/apps/` is `/apps`."""
        assert eureka.get("/apps/").status_code == 200


class TestResponseCache:
    @timed
    def test_a_list_is_stale_until_the_next_tick(self, eureka: EurekaSubject, app: str) -> None:
        """What was registered after a list was read appears in it at the next tick."""
        eureka.to_next_tick()
        eureka.get("/apps")
        register(eureka, app)
        assert eureka.listed(app) == []
        eureka.to_next_tick()
        assert len(eureka.listed(app)) == 1

    @timed
    def test_a_cancelled_instance_stays_listed_until_the_next_tick(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """What was cancelled after a list was read is in it, as UP, until the next tick."""
        instance_id = register(eureka, app)
        eureka.to_next_tick()
        eureka.get("/apps")
        eureka.delete(f"/apps/{app}/{instance_id}")
        assert [one["status"] for one in eureka.listed(app)] == ["UP"]
        eureka.to_next_tick()
        assert eureka.listed(app) == []

    @timed
    def test_one_application_is_cached_as_well(self, eureka: EurekaSubject, app: str) -> None:
        """`GET /apps/{APP}` is cached, while `GET /apps/{APP}/{id}` is not."""
        register(eureka, app, 0)
        eureka.to_next_tick()
        eureka.get(f"/apps/{app}")
        second = register(eureka, app, 1)
        assert len(eureka.get(f"/apps/{app}").json()["application"]["instance"]) == 1
        assert eureka.get(f"/apps/{app}/{second}").status_code == 200
        eureka.to_next_tick()
        assert len(eureka.get(f"/apps/{app}").json()["application"]["instance"]) == 2

    @timed
    def test_a_404_is_cached(self, eureka: EurekaSubject, app: str) -> None:
        """`GET /apps/{APP}` of an absent app is a 404, which outlives a register until the next
        tick."""
        eureka.to_next_tick()
        assert eureka.get(f"/apps/{app}").status_code == 404
        register(eureka, app)
        assert eureka.get(f"/apps/{app}").status_code == 404
        eureka.to_next_tick()
        assert eureka.get(f"/apps/{app}").status_code == 200

    @pytest.mark.servers
    @timed
    def test_each_form_of_a_list_is_cached_by_itself(
        self, real_eureka: EurekaSubject, app: str
    ) -> None:
        """The JSON and the XML form of a list are two cache entries: one may be stale while the
        other is not."""
        real_eureka.to_next_tick()
        assert real_eureka.get(f"/apps/{app}").status_code == 404
        register(real_eureka, app)
        assert real_eureka.get(f"/apps/{app}", Accept="application/xml").status_code == 200
        assert real_eureka.get(f"/apps/{app}").status_code == 404

    @pytest.mark.servers
    @timed
    def test_a_part_of_a_vip_list_is_not_invalidated(
        self, real_eureka: EurekaSubject, app: str
    ) -> None:
        """`/vips/a` that was read before stays empty over a tick when `"a,b"` registers: only that
        is invalidated."""
        name = app.lower()
        real_eureka.get(f"/vips/{name}-a")
        register(real_eureka, app, vipAddress=f"{name}-a,{name}-b")
        real_eureka.to_next_tick()
        assert real_eureka.get(f"/vips/{name}-a").json()["applications"]["application"] == []

    @timed
    def test_a_status_that_a_renew_changed_stays_hidden_in_lists(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """A renew invalidates nothing: a status that it turned by an override of another app is not
        in the list."""
        instance_id = register(eureka, app)
        eureka.post(f"{app}B", instance_body(f"{app}B", instance_id))
        eureka.put(f"/apps/{app}/{instance_id}/status", value="OUT_OF_SERVICE")
        eureka.to_next_tick()
        eureka.get("/apps")
        eureka.put(f"/apps/{app}B/{instance_id}")
        eureka.wait(2 * eureka.cache_seconds)  # no other write, which would empty the cache
        assert [one["status"] for one in eureka.listed(f"{app}B")] == ["UP"]
        assert eureka.instance(f"{app}B", instance_id)["status"] == "OUT_OF_SERVICE"

    @timed
    def test_by_default_ticks_come_each_30_s_of_the_wall_clock(
        self, stock_eureka: EurekaSubject, app: str
    ) -> None:
        """By default a list is stale until the next multiple of 30 s, however young it is."""
        if stock_eureka.now() % 30 > 27:
            stock_eureka.wait(5)
        stock_eureka.get("/apps")
        register(stock_eureka, app)
        left = 30 - stock_eureka.now() % 30
        stock_eureka.wait(left - 1.0)
        assert stock_eureka.listed(app) == []
        stock_eureka.wait(3.0)
        assert len(stock_eureka.listed(app)) == 1


class TestLeases:
    @timed
    def test_a_registered_lease_lasts_its_duration(self, eureka: EurekaSubject, app: str) -> None:
        """After a register the lease lasts D; expired, it is a 404 to reads and, once evicted, to
        renew."""
        instance_id = register(eureka, app, leaseInfo={"durationInSecs": 1})
        eureka.wait(0.5)
        assert eureka.get(f"/apps/{app}/{instance_id}").status_code == 200
        eureka.wait(0.7)
        assert eureka.get(f"/apps/{app}/{instance_id}").status_code == 404
        assert eureka.get(f"/instances/{instance_id}").status_code == 404
        eureka.wait(2.2)
        assert eureka.put(f"/apps/{app}/{instance_id}").status_code == 404

    @timed
    def test_a_renewed_lease_lasts_twice_its_duration(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """After a renew the lease lasts 2D."""
        instance_id = register(eureka, app, leaseInfo={"durationInSecs": 1})
        eureka.put(f"/apps/{app}/{instance_id}")
        eureka.wait(1.6)
        assert eureka.get(f"/apps/{app}/{instance_id}").status_code == 200
        eureka.wait(0.6)
        assert eureka.get(f"/apps/{app}/{instance_id}").status_code == 404

    @timed
    def test_a_post_shortens_a_renewed_lease(self, eureka: EurekaSubject, app: str) -> None:
        """A POST resets a renewed lease to D, also one that is ignored as older."""
        instance_id = register(eureka, app, leaseInfo={"durationInSecs": 1})
        eureka.put(f"/apps/{app}/{instance_id}")
        register(eureka, app, leaseInfo={"durationInSecs": 1}, lastDirtyTimestamp="1")
        eureka.wait(1.2)
        assert eureka.get(f"/apps/{app}/{instance_id}").status_code == 404

    @timed
    def test_an_evicted_instance_leaves_the_list_at_the_next_tick(
        self, eureka: EurekaSubject, app: str
    ) -> None:
        """An evicted instance leaves the list like a cancelled one."""
        register(eureka, app, leaseInfo={"durationInSecs": 1})
        eureka.to_next_tick()
        assert len(eureka.listed(app)) == 1
        eureka.wait(2.2)
        eureka.to_next_tick()
        assert eureka.listed(app) == []

    @timed
    def test_a_run_evicts_at_most_15_percent(self, eureka: EurekaSubject, app: str) -> None:
        """Of 20 expired leases a run evicts 3; expired ones that are left stay in the list and can
        be renewed."""
        for number in range(20):
            register(eureka, app, number, leaseInfo={"durationInSecs": 1})
        eureka.wait(2.5)
        alive = [
            n for n in range(20) if eureka.put(f"/apps/{app}/{app.lower()}-{n}").status_code == 200
        ]
        assert 11 <= len(alive) <= 17

    @timed
    def test_self_preservation_keeps_expired_leases(
        self, stock_eureka: EurekaSubject, app: str
    ) -> None:
        """While self-preservation holds, an expired lease is read and renewed as if it were
        alive."""
        instance_id = register(stock_eureka, app, leaseInfo={"durationInSecs": 1})
        stock_eureka.wait(1.5)
        assert stock_eureka.get(f"/apps/{app}/{instance_id}").status_code == 200
        assert stock_eureka.put(f"/apps/{app}/{instance_id}").status_code == 200


class TestOtherPaths:
    def test_the_root_is_a_page(self, eureka: EurekaSubject) -> None:
        """`/` is a page for people."""
        answer = requests.get(eureka.root + "/", timeout=60)
        if Otherwise.NO_SPRING in eureka.otherwise:
            assert answer.status_code == 404
            return
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("text/html")

    @pytest.mark.parametrize("path", ["/apps", "/eureka/nonsense", "/nonsense/eureka/apps"])
    def test_an_unknown_path_is_a_404(self, eureka: EurekaSubject, path: str) -> None:
        """Without `/eureka`, or past it, a path is a 404 whose JSON names status and path."""
        answer = requests.get(
            eureka.root + path, headers={"Accept": "application/json"}, timeout=60
        )
        assert answer.status_code == 404
        if Otherwise.NO_SPRING in eureka.otherwise:
            assert not answer.headers.get("Content-Type", "").startswith("application/json")
            return
        if Otherwise.BARE_404 in eureka.otherwise and path.startswith("/eureka"):
            assert answer.content == b""
            return
        error = answer.json()
        assert (error["status"], error["error"], error["path"]) == (404, "Not Found", path)

    def test_a_404_of_eureka_has_the_same_form(self, eureka: EurekaSubject, app: str) -> None:
        """The 404 for an instance is JSON with `status`, `error`, `path` and `timestamp`: it tells
        nothing apart."""
        answer = eureka.get(f"/apps/{app}/nobody")
        assert answer.status_code == 404
        if Otherwise.BARE_404 in eureka.otherwise:
            assert answer.content == b""
            return
        assert set(answer.json()) == {"timestamp", "status", "error", "path"}


class TestGuards:
    @pytest.mark.newest_alone
    @pytest.mark.parametrize("auth", [None, ("sync", "wrong")], ids=["no login", "wrong login"])
    def test_without_the_right_login_everything_is_a_401(
        self, guarded_url: str, auth: tuple[str, str] | None
    ) -> None:
        """With basic authentication every call without the right login is a 401 with an empty
        body."""
        for method, path in (
            ("GET", "/apps"),
            ("PUT", "/apps/A/b"),
            ("POST", "/apps/A"),
            ("DELETE", "/apps/A/b"),
        ):
            answer = requests.request(
                method, guarded_url + path, headers=JSON, auth=auth, timeout=60
            )
            assert (answer.status_code, answer.content) == (401, b"")
            assert answer.headers["WWW-Authenticate"] == 'Basic realm="Realm"'

    def test_while_it_warms_up_a_server_refuses_lists_only(self, guarded_url: str) -> None:
        """In warm-up lists are a 403, while single reads and all writes work."""
        with requests.Session() as session:
            session.auth, session.headers["Accept"] = ("sync", "secret"), "application/json"
            for path in ("/apps", "/apps/WARM"):
                assert session.get(guarded_url + path, timeout=60).status_code == 403
            one = f"{guarded_url}/apps/WARM/w-0"
            body = {"instance": instance_body("WARM", "w-0")}
            assert session.get(one, timeout=60).status_code == 404
            assert (
                session.post(f"{guarded_url}/apps/WARM", json=body, timeout=60).status_code == 204
            )
            assert session.get(one, timeout=60).status_code == 200
            assert session.put(one, timeout=60).status_code == 200
            assert session.delete(one, timeout=60).status_code == 200
