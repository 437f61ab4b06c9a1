"""Eureka's JSON: which fields are read, which are ignored, and what makes a list unusable."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eurekube_sync.adapters.eureka import wire
from eurekube_sync.model.errors import RegistryRejected, RegistryUnusable
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, LeaseTimes, Port

OURS: dict[str, Any] = {
    "instanceId": "prod:shop:rating:10.0.0.1:8080",
    "hostName": "10.0.0.1",
    "app": "RATING",
    "ipAddr": "10.0.0.1",
    "status": "UP",
    "overriddenStatus": "UNKNOWN",
    "port": {"$": 8080, "@enabled": "true"},
    "securePort": {"$": 443, "@enabled": "false"},
    "leaseInfo": {
        "renewalIntervalInSecs": 30,
        "durationInSecs": 300,
        "registrationTimestamp": 1,
        "lastRenewalTimestamp": 2,
    },
    "metadata": {"eurekube.owner": "prod"},
    "vipAddress": "rating",
    "secureVipAddress": "rating",
    "lastDirtyTimestamp": "1795248000785",
    "isCoordinatingDiscoveryServer": "false",
}
THEIRS: dict[str, Any] = OURS | {"instanceId": "dc-host:rating:8080", "metadata": {"zone": "a"}}


def listing(*instances: Any, hash_code: str | None = None) -> bytes:
    applications: dict[str, Any] = {
        "application": [{"name": "RATING", "instance": list(instances)}]
    }
    if hash_code is not None:
        applications["apps__hashcode"] = hash_code
    return json.dumps({"applications": applications}).encode()


def changed(instance: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return copy.deepcopy(instance) | changes


class TestWellFormed:
    def test_an_instance_is_read_whole(self) -> None:
        """Every field that a pass needs is read."""
        (seen,) = wire.decode_list(listing(OURS)).instances
        assert seen.key == InstanceKey("RATING", "prod:shop:rating:10.0.0.1:8080")
        assert (seen.instance.host_name, seen.instance.ip_addr) == ("10.0.0.1", "10.0.0.1")
        assert (seen.instance.port, seen.instance.secure_port) == (
            Port(8080, True),
            Port(443, False),
        )
        assert (seen.status, seen.instance.override) == (InstanceStatus.UP, InstanceStatus.UNKNOWN)
        assert (seen.instance.lease, seen.last_dirty_timestamp) == (
            LeaseTimes(30, 300),
            1795248000785,
        )
        assert (seen.registered, seen.last_renewal) == (1, 2)
        assert (seen.metadata, seen.instance.vip_address) == ({"eurekube.owner": "prod"}, "rating")

    @pytest.mark.parametrize("number", [8080, "8080"])
    @pytest.mark.parametrize("enabled", [True, "true"])
    def test_a_port_may_be_text_or_native(self, number: object, enabled: object) -> None:
        (seen,) = wire.decode_list(
            listing(changed(OURS, port={"$": number, "@enabled": enabled}))
        ).instances
        assert seen.instance.port == Port(8080, True)

    def test_a_single_element_may_be_collapsed(self) -> None:
        """Old codecs write an object instead of an array with one application or instance."""
        body = {"applications": {"application": {"name": "RATING", "instance": OURS}}}
        assert len(wire.decode_list(json.dumps(body).encode()).instances) == 1

    def test_a_collapsed_element_may_be_malformed(self) -> None:
        """A malformed instance of another owner is treated as in an array."""
        bad = changed(THEIRS, port=8080)
        body = {"applications": {"application": {"name": "RATING", "instance": bad}}}
        assert wire.decode_list(json.dumps(body).encode()).malformed == (
            "RATING/dc-host:rating:8080",
        )

    @pytest.mark.parametrize("spelling", ["overriddenStatus", "overriddenstatus"])
    def test_an_override_has_two_spellings(self, spelling: str) -> None:
        """Both spellings are read. A set status takes precedence over UNKNOWN."""
        instance = changed(OURS)
        instance[spelling] = "OUT_OF_SERVICE"
        (seen,) = wire.decode_list(listing(instance)).instances
        assert seen.instance.override is InstanceStatus.OUT_OF_SERVICE

    def test_left_out_and_null_fields_are_empty(self) -> None:
        """A missing or null field is empty, zero or UNKNOWN. The app is the application's name."""
        null = dict.fromkeys(OURS) | {"instanceId": "a"}
        for instance in ({"instanceId": "a"}, null):
            (seen,) = wire.decode_list(listing(instance)).instances
            assert seen.key == InstanceKey("RATING", "a")
            assert (seen.instance.port, seen.instance.lease, seen.metadata) == (
                Port(0, False),
                LeaseTimes(0, 0),
                {},
            )
            assert seen.status is InstanceStatus.UNKNOWN

    def test_empty_metadata_is_empty(self) -> None:
        """Empty metadata has a key `@class`, which is ignored."""
        (seen,) = wire.decode_list(
            listing(changed(OURS, metadata={"@class": "java.util.Collections$EmptyMap"}))
        ).instances
        assert seen.metadata == {}

    def test_native_metadata_becomes_text(self) -> None:
        """Numbers and booleans in metadata become text. A null is left out."""
        (seen,) = wire.decode_list(
            listing(changed(OURS, metadata={"a": 1, "b": True, "c": None}))
        ).instances
        assert seen.metadata == {"a": "1", "b": "true"}

    def test_an_unknown_status_is_unknown(self) -> None:
        """A status that Eureka does not define is UNKNOWN and no error."""
        (seen,) = wire.decode_list(listing(changed(OURS, status="up"))).instances
        assert seen.status is InstanceStatus.UNKNOWN

    def test_a_blank_id_is_the_host_name(self) -> None:
        """An instance without an id has its host name as id, as in the server."""
        (seen,) = wire.decode_list(
            listing(changed(THEIRS, instanceId=None, hostName="h"))
        ).instances
        assert seen.key == InstanceKey("RATING", "h")

    def test_an_empty_registry_is_complete(self) -> None:
        """`application: []` is an empty registry."""
        body = b'{"applications":{"versions__delta":"1","apps__hashcode":"","application":[]}}'
        assert wire.decode_list(body) == wire.DecodedList(instances=())


class TestUnusable:
    @pytest.mark.parametrize(
        "body",
        [
            b"{}",
            b"[]",
            b"null",
            b'"x"',
            b'{"applications":null}',
            b'{"applications":{}}',
            b'{"applications":[]}',
            b'{"applications":{"application":null}}',
            b'{"applications":{"application":"x"}}',
            b'{"applications":{"application":[null]}}',
            b'{"applications":{"application":[{"name":"A"}]}}',
            b'{"applications":{"application":[{"name":"A","instance":null}]}}',
            b'{"applications":{"application":[{"name":"A","instance":[null]}]}}',
            b'{"applications":{"application":[{"name":7,"instance":[]}]}}',
            b'{"error":"x"}',
        ],
    )
    def test_json_that_is_no_registry_is_unusable(self, body: bytes) -> None:
        """JSON of another shape is an error, never an empty registry."""
        with pytest.raises(RegistryUnusable):
            wire.decode_list(body)

    @given(st.integers(min_value=0, max_value=len(listing(OURS, THEIRS)) - 1))
    def test_a_cut_answer_is_unusable(self, length: int) -> None:
        """This holds for every proper prefix of a list."""
        with pytest.raises(RegistryUnusable):
            wire.decode_list(listing(OURS, THEIRS)[:length])

    def test_a_cut_answer_with_a_malformed_instance_is_unusable(self) -> None:
        """The malformed instance does not hide that the answer is cut after it."""
        with pytest.raises(RegistryUnusable):
            wire.decode_list(listing(changed(THEIRS, port=8080), OURS)[:-30])

    def test_a_list_with_fewer_instances_than_it_counts_is_unusable(self) -> None:
        """A list with fewer instances than its hash code counts was shortened in transit."""
        assert (
            len(
                wire.decode_list(
                    listing(OURS, THEIRS, hash_code="OUT_OF_SERVICE_1_UP_1_")
                ).instances
            )
            == 2
        )
        with pytest.raises(
            RegistryUnusable, match="holds fewer instances than its own apps__hashcode counts"
        ):
            wire.decode_list(listing(OURS, hash_code="OUT_OF_SERVICE_1_UP_1_"))

    @pytest.mark.parametrize("hash_code", ["", "nonsense", "abc_7"])
    def test_a_hash_code_of_another_form_is_no_matter(self, hash_code: str) -> None:
        """A hash code without counts is ignored."""
        assert len(wire.decode_list(listing(OURS, hash_code=hash_code)).instances) == 1


class TestMalformed:
    @pytest.mark.parametrize(
        ("changes", "unread"),
        [
            ({"port": 8080}, "port"),
            ({"port": {"$": "abc"}}, "port"),
            ({"leaseInfo": []}, "lease_info"),
            ({"status": 5}, "status"),
            ({"lastDirtyTimestamp": "yesterday"}, "last_dirty_timestamp"),
            ({"vipAddress": {"a": "b"}}, "vip_address"),
            ({"metadata": {"zone": {"a": "b"}}}, "metadata"),
            ({"app": []}, None),  # the list has the app's name beside the instance
            ({"instanceId": {}}, None),  # the host name is its id
        ],
    )
    def test_of_others_what_can_be_read_is_kept(
        self, changes: dict[str, Any], unread: str | None
    ) -> None:
        """A malformed field of another owner's instance is empty, and named. The instance is listed
        and reported."""
        decoded = wire.decode_list(listing(changed(THEIRS, **changes), OURS))
        assert [seen.key.app for seen in decoded.instances] == ["RATING", "RATING"]
        assert len(decoded.malformed) == 1
        assert decoded.instances[0].unread == frozenset({unread} if unread else ())
        assert decoded.instances[1].unread == frozenset()
        assert decoded.instances[0].instance.host_name == "10.0.0.1"

    def test_of_others_one_without_a_key_is_listed(self) -> None:
        """Another owner's instance without id and host name, or without an app. It is as real as
        the others, and the comparison with the hash code includes it."""
        nameless = changed(THEIRS, instanceId=None, hostName=None)
        decoded = wire.decode_list(listing(nameless, OURS, hash_code="UP_2_"))
        assert [seen.key.id for seen in decoded.instances] == ["", OURS["instanceId"]]
        assert decoded.instances[0].unread == {"instance_id"}
        assert decoded.malformed == ("RATING/None",)
        body = listing(changed(THEIRS, app=[])).replace(b'"name": "RATING"', b'"name": null')
        (appless,) = wire.decode_list(body).instances
        assert appless.key.app == ""
        assert appless.unread == {"app"}

    @pytest.mark.parametrize("field", ["ipAddr", "status", "vipAddress"])
    def test_a_text_with_a_stray_byte_is_not_read(self, field: str) -> None:
        """What stands in its place is no address, and no name."""
        value = json.dumps(THEIRS[field]).encode()
        spoilt = value[:-1] + b'\xff"'
        key = json.dumps(field).encode()
        body = listing(THEIRS).replace(key + b": " + value, key + b": " + spoilt)
        (seen,) = wire.decode_list(body).instances
        assert len(seen.unread) == 1
        assert "\ufffd" not in f"{seen.instance.ip_addr}{seen.instance.vip_address}"

    @pytest.mark.parametrize(
        "changes",
        [
            {"port": 8080},
            {"ipAddr": [], "vipAddress": []},
            {"metadata": {"zone": []}},
            {"instanceId": None, "hostName": None},
        ],
    )
    def test_a_record_says_again_what_was_not_read(self, changes: dict[str, Any]) -> None:
        """So `--from` decides as the pass did."""
        decoded = wire.decode_list(listing(changed(THEIRS, **changes)))
        written = [wire.observed_document(seen) for seen in decoded.instances]
        assert wire.decode_list(listing(*written)).instances == decoded.instances

    @pytest.mark.parametrize(
        "instance",
        [
            pytest.param(changed(OURS, port=8080), id="our metadata"),
            pytest.param(changed(OURS, port=8080, instanceId="x"), id="our metadata, another id"),
            pytest.param(changed(OURS, port=8080, metadata=None), id="our id, no metadata"),
            pytest.param(changed(THEIRS, metadata=["eurekube.owner"]), id="unreadable metadata"),
            pytest.param(
                changed(THEIRS, metadata={"a": {"b": "c"}, "eurekube.owner": "p"}),
                id="ours among nested",
            ),
            pytest.param("x", id="no object"),
        ],
    )
    def test_one_that_could_be_ours_makes_the_list_unusable(self, instance: Any) -> None:
        """A malformed instance that may be ours must not count as absent or as changed."""
        with pytest.raises(RegistryUnusable, match="could be ours"):
            wire.decode_list(listing(instance, THEIRS))

    @given(
        st.sampled_from(sorted(THEIRS)),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(st.text(max_size=5), inner, max_size=2)
            ),
            max_leaves=4,
        ),
    )
    def test_no_field_of_others_hides_ours(self, field: str, value: Any) -> None:
        """Whatever the value of another owner's field, our instance is read or the list is
        unusable."""
        try:
            decoded = wire.decode_list(
                listing(changed(THEIRS, **{field: value}), OURS, hash_code="UP_2_")
            )
        except RegistryUnusable:
            return
        assert any(seen.key.id == OURS["instanceId"] for seen in decoded.instances)
        assert len(decoded.instances) == 2


class TestOne:
    def test_one_instance_is_read(self) -> None:
        """The answer to the uncached read has the root `instance`."""
        assert wire.decode_instance(json.dumps({"instance": OURS}).encode()).key.app == "RATING"

    @pytest.mark.parametrize(
        "body", [b"{}", b'{"instance":[]}', b'{"instance":{}}', b'{"instance":{"app":"A"', b"x"]
    )
    def test_a_body_that_is_no_instance_is_unusable(self, body: bytes) -> None:
        """The body has another shape, lacks a key, or is cut."""
        with pytest.raises(RegistryUnusable):
            wire.decode_instance(body)

    def test_a_number_that_is_none_does_not_say_that_the_answer_was_cut(self) -> None:
        """The JSON is complete."""
        with pytest.raises(RegistryUnusable, match="is JSON but not an instance"):
            wire.decode_instance(
                json.dumps({"instance": {**OURS, "lastDirtyTimestamp": "soon"}}).encode()
            )


def instance(**changes: Any) -> Instance:
    fields: dict[str, Any] = {
        "key": InstanceKey("RATING", "prod:shop:rating:10.0.0.1:8080"),
        "host_name": "10.0.0.1",
        "ip_addr": "10.0.0.1",
        "port": Port(8080, True),
        "secure_port": Port(443, False),
        "vip_address": "rating",
        "secure_vip_address": "rating",
        "status": InstanceStatus.UP,
        "lease": LeaseTimes(30, 300),
        "metadata": {"eurekube.owner": "prod"},
    }
    return Instance(**(fields | changes))


class TestRegisterBody:
    def test_the_body_is_exact(self) -> None:
        """The body has these fields and no others. The override is always UNKNOWN."""
        body = json.loads(wire.encode_instance(instance(), dirty_timestamp=1795248000785))
        assert body == {
            "instance": {
                "instanceId": "prod:shop:rating:10.0.0.1:8080",
                "hostName": "10.0.0.1",
                "ipAddr": "10.0.0.1",
                "app": "RATING",
                "vipAddress": "rating",
                "secureVipAddress": "rating",
                "status": "UP",
                "overriddenstatus": "UNKNOWN",
                "port": {"$": 8080, "@enabled": "true"},
                "securePort": {"$": 443, "@enabled": "false"},
                "dataCenterInfo": {
                    "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
                    "name": "MyOwn",
                },
                "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": 300},
                "metadata": {"eurekube.owner": "prod"},
                "lastDirtyTimestamp": "1795248000785",
            }
        }

    def test_urls_are_sent_when_given(self) -> None:
        """Empty URLs are left out."""
        body = json.loads(
            wire.encode_instance(instance(home_page_url="http://a/"), dirty_timestamp=1)
        )
        assert body["instance"]["homePageUrl"] == "http://a/"
        assert "statusPageUrl" not in body["instance"]

    @pytest.mark.parametrize(
        "metadata", [{"k:v": "x"}, {"": "x"}, {"a b": "x"}, {"7": "x"}, {"a": "\x01"}, {"a/b": ""}]
    )
    def test_metadata_that_breaks_xml_is_not_sent(self, metadata: dict[str, str]) -> None:
        """A key that is no XML name, or a control character, would break `/apps` for every reader
        of XML."""
        with pytest.raises(RegistryRejected, match="was not sent"):
            wire.encode_instance(instance(metadata=metadata), dirty_timestamp=1)

    @given(
        st.dictionaries(
            st.from_regex(r"[A-Za-z_][A-Za-z0-9._-]{0,10}", fullmatch=True),
            st.text(
                st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), max_size=20
            ),
            max_size=5,
        ),
        st.integers(1, 65535),
        st.sampled_from([InstanceStatus.UP, InstanceStatus.DOWN]),
    )
    def test_an_instance_that_is_written_is_read_back(
        self, metadata: dict[str, str], port: int, status: InstanceStatus
    ) -> None:
        """A server may return a registered body unchanged. It is read as the instance that was
        written."""
        wanted = instance(
            metadata=metadata, port=Port(port, True), status=status, home_page_url="http://a/"
        )
        seen = wire.decode_instance(wire.encode_instance(wanted, dirty_timestamp=5))
        assert (seen.key, seen.metadata, seen.instance.port, seen.status) == (
            wanted.key,
            metadata,
            wanted.port,
            status,
        )
        assert (seen.instance.lease, seen.instance.vip_address, seen.instance.home_page_url) == (
            wanted.lease,
            "rating",
            "http://a/",
        )
        assert seen.last_dirty_timestamp == 5
