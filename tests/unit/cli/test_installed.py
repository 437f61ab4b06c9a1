"""The settings of the installation in the cluster: which one is meant, what of it is used, and what
is said."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, cast

import click
import pytest

from eurekube_sync.adapters.kubernetes.connection import Connection
from eurekube_sync.cli import installed
from eurekube_sync.cli.command_line import cli
from eurekube_sync.cli.connect import Installation, lock_namespace
from eurekube_sync.cli.options.servers import PASSWORD_VARIABLE
from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.model.errors import SourceUnknown
from tests.unit.adapters.kubernetes.world import World, answer

LABELS = {"app.kubernetes.io/name": "eurekube-sync"}
SETTINGS = {
    "EUREKUBE_SYNC_OWNER": "prod",
    "EUREKUBE_SYNC_EUREKA_URL": "http://eureka/eureka",
    "EUREKUBE_SYNC_REQUIRE_APP_GRANT": "true",
}
LOGIN = {
    "EUREKUBE_SYNC_EUREKA_USERNAME": "joe",
    "EUREKUBE_SYNC_EUREKA_PASSWORD_FILE": "/var/run/secrets/eurekube-sync/password",
}


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """Restore the logger, because a command changes it for the whole process."""
    logger = logging.getLogger("eurekube_sync")
    handlers, level, propagate = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:], logger.level, logger.propagate = handlers, level, propagate


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A cluster to which each command connects, and a laptop without variables."""
    world = World()
    monkeypatch.setattr(installed, "to_cluster", lambda *_, **__: world.connection)
    for name in (*SETTINGS, *LOGIN, PASSWORD_VARIABLE, "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    return world


def pod(*args: str, env: Any = (), env_from: Any = None, name: str = "eurekube-sync") -> Any:
    """The pod template of a workload."""
    sidecar = {"name": "a-sidecar", "image": "x", "args": ["proxy", "--owner=mesh"]}
    container = {
        "name": "eurekube-sync",
        "command": ["eurekube-sync"],
        "args": list(args) or ["run", "--passes=2", "--interval=30s"],
        "envFrom": env_from or [{"configMapRef": {"name": name}}],
        "env": list(env),
    }
    return {"spec": {"containers": [sidecar, container]}}


def install(
    world: World,
    *args: str,
    name: str = "eurekube-sync",
    namespace: str = "eurekube-sync",
    settings: Any = None,
    kind: str = "CronJob",
    labels: Any = None,
    spec: Any = None,
    **more: Any,
) -> None:
    """Make a CronJob or Deployment with its ConfigMap, as the chart does."""
    world.server.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    meta = {"name": name, "labels": LABELS if labels is None else labels}
    data = SETTINGS if settings is None else settings
    world.make(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": meta, "data": data})
    template = pod(*args, name=name, **more)
    if kind == "CronJob":
        body = {"jobTemplate": {"spec": {"template": template}}, **(spec or {})}
        path = f"/apis/batch/v1/namespaces/{namespace}/cronjobs"
    else:
        body = {"template": template, **(spec or {})}
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    world.make(path, {"metadata": meta, "spec": body})


def read(*words: str) -> Any:
    """Return the values that a command gets."""
    name, *args = words
    root = click.Context(cli)
    command = cli.get_command(root, name)
    assert command is not None
    context = command.make_context(name, list(args), parent=root)
    return context.params


def of(*words: str) -> Installation:
    found = read(*words)["installation"]
    assert isinstance(found, Installation)
    return found


def notes(found: Installation) -> str:
    assert found.installed is not None
    return "\n".join(found.installed.notes)


COMMANDS = [["status"], ["explain", "a/b"], ["check"], ["orphans"], ["run", "--dry-run"]]


@pytest.mark.parametrize("kind", ["CronJob", "Deployment"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_a_look_has_the_settings_of_the_installation(
    world: World, command: list[str], kind: str
) -> None:
    """Grants included, and the namespace of its lock. An injected container is not it."""
    install(world, kind=kind, namespace="sync")
    found = of(*command)
    assert (found.owner, found.eureka_url) == ("prod", "http://eureka/eureka")
    assert found.scope.granted_only
    assert found.installed is not None
    assert (found.installed.ref, found.installed.kind) == ("sync/eurekube-sync", kind)
    assert found.installed.deployed.resource == f"{kind.lower()} eurekube-sync -n sync"
    options = ["--owner", "--eureka-url", "--require-app-grant"]
    if command == ["check"]:
        options.insert(0, "--interval")
    assert found.installed.data() == {
        "namespace": "sync",
        "name": "eurekube-sync",
        "kind": kind,
        "options": options,
        "notes": [],
    }
    assert lock_namespace(found) == "sync"


def test_a_printed_command_names_the_installation(world: World) -> None:
    """Else it would be pasted without an owner."""
    install(world)
    options = of("status").settings().options
    assert options[:2] == ("--installation", "eurekube-sync/eurekube-sync")


def test_a_real_pass_looks_for_nothing_unless_an_installation_is_named(world: World) -> None:
    """A pass of an installation must not depend on rights that it lacks. A release of held removals
    on a laptop needs the same settings."""
    install(world)
    before = len(world.requests)
    with pytest.raises(click.UsageError, match=r"Missing options '--owner' and '--eureka-url'\."):
        of("run")
    assert of("run", "--owner=a", "--eureka-url=http://e/eureka").installed is None
    assert len(world.requests) == before
    named = of("run", "--approve=0123456789ab", "--installation", "eurekube-sync/eurekube-sync")
    assert named.owner == "prod"
    assert named.scope.granted_only


@pytest.mark.parametrize("words", [["--installation=off"], ["--from=file.json"]])
def test_who_wants_none_gets_none(world: World, words: list[str]) -> None:
    install(world)
    before = len(world.requests)
    found = of("status", *words)
    assert (found.installed, found.owner) == (None, "")
    assert len(world.requests) == before


def test_a_pod_looks_for_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the installation have its settings as variables, and no right to read it."""
    install(world)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert of("status").installed is None
    assert of("status", "--context=other").installed is not None


def test_help_and_a_wrong_option_call_no_server(world: World) -> None:
    """The installation is looked for when all else is right."""
    install(world)
    before = len(world.requests)
    for words in (["--call-timeout=0"], ["--nonsense"], ["a-word"]):
        with pytest.raises(click.UsageError):
            read("status", *words)
    with pytest.raises(click.exceptions.Exit):
        read("run", "--dry-run", "--help")
    assert len(world.requests) == before


def test_what_is_given_by_hand_wins_and_is_said(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line before variables, these before the installation."""
    settings = SETTINGS | {"EUREKUBE_SYNC_NAMESPACE": "rating,shop"}
    install(world, "run", "--brake=too-much=5", "--policy=upsert-only", settings=settings)
    monkeypatch.setenv("EUREKUBE_SYNC_REQUIRE_APP_GRANT", "false")
    monkeypatch.setenv("EUREKUBE_SYNC_OWNER", "other")
    found = of("status", "--owner=test", "-n", "shop", "--policy=sync")
    assert (found.owner, found.scope.granted_only) == ("test", False)
    assert found.brake.loss_percent == 5
    assert found.scope.namespaces == frozenset({"shop"})
    assert notes(found) == (
        "this differs from the installation eurekube-sync/eurekube-sync: --owner is test, and not "
        "prod; --require-app-grant is false, and not true; --policy is sync, and not upsert-only"
    )
    assert "--namespace is other, and not rating,shop" in notes(of("status", "-n", "other"))


def test_settings_of_arguments_win_over_variables(world: World) -> None:
    """As in the pod. `env` wins over `envFrom`, and `$(NAME)` is expanded."""
    env = [
        {"name": "CLUSTER", "value": "blue"},
        {"name": "EUREKUBE_SYNC_OWNER", "value": "$(CLUSTER)-1"},
        {"name": "EUREKUBE_SYNC_SYNCER_CLASS", "value": "edge"},
        {
            "name": "EUREKUBE_SYNC_NAMESPACE",
            "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}},
        },
    ]
    install(world, "run", "--daemon", "--syncer-class", "$(CLUSTER)", env=env)
    found = of("status")
    assert (found.owner, found.scope.syncer_class) == ("blue-1", "blue")
    assert found.scope.namespaces == frozenset({"eurekube-sync"})


def test_check_takes_the_interval(world: World) -> None:
    install(world, "run", "--daemon", "--interval=10s")
    assert read("check")["interval"] == 10
    assert read("check", "--interval=60s")["interval"] == 60


def test_what_is_of_one_process_is_not_taken(world: World) -> None:
    """Such as the number of passes, the output and the logs."""
    settings = SETTINGS | {"EUREKUBE_SYNC_OUTPUT": "json", "EUREKUBE_SYNC_RECORD": "/records"}
    install(world, "run", "--daemon", "--listen=:8080", "--verbose", settings=settings)
    params = read("run", "--dry-run")
    assert not params["passes"].daemon
    assert params["monitoring"].listen is params["monitoring"].record is None
    assert (params["form"].output, params["form"].verbose) == ("table", False)
    assert notes(params["installation"]) == ""


# --- None, several, hidden ------------------------------------------------------------------------


def test_without_an_installation_all_is_as_before(world: World) -> None:
    """The sentence about missing options says that none was found."""
    found = of("status")
    assert (found.owner, found.eureka_url, notes(found)) == ("", "", "")
    assert found.installed is not None
    assert not found.installed.ref
    with pytest.raises(click.UsageError) as refused:
        of("run", "--dry-run", "--owner=a")
    assert refused.value.message == (
        "Missing option '--eureka-url': no installation is in the cluster (label "
        "app.kubernetes.io/name=eurekube-sync)"
    )


def test_of_several_the_one_that_fits_is_used(world: World) -> None:
    """By owner, class and namespaces. If it is not clear, all are named."""
    install(world, namespace="a", settings=SETTINGS | {"EUREKUBE_SYNC_NAMESPACE": "rating"})
    install(world, namespace="b", settings=SETTINGS | {"EUREKUBE_SYNC_OWNER": "edge"})
    install(world, "run", "--syncer-class=x", namespace="c", kind="Deployment")
    for words, namespace in (
        (["--owner=edge"], "b"),
        (["--syncer-class=x"], "c"),
        (["--installation=a/eurekube-sync"], "a"),
        (["--owner=prod", "-n", "rating", "--installation=a/eurekube-sync"], "a"),
    ):
        found = of("status", *words).installed
        assert found is not None
        assert found.namespace == namespace
    with pytest.raises(click.UsageError) as refused:
        of("status")
    assert refused.value.message == (
        "several installations are in the cluster: c/eurekube-sync (Deployment, owner prod), "
        "a/eurekube-sync (CronJob, owner prod), b/eurekube-sync (CronJob, owner edge); choose one "
        "with --installation NAMESPACE/NAME"
    )
    by_hand = of("status", "--owner=prod", "--eureka-url=http://e/eureka")
    assert by_hand.installed is not None
    assert not by_hand.installed.ref
    assert "none of their settings are used" in notes(by_hand)


def test_an_installation_that_does_not_work_is_the_last_choice(world: World) -> None:
    """Such as the CronJob that a daemon replaced."""
    install(world, namespace="old", spec={"suspend": True})
    assert "old/eurekube-sync does not run: it is suspended" in notes(of("status"))
    install(world, "run", "--daemon", namespace="new", kind="Deployment")
    found = of("status").installed
    assert found is not None
    assert found.namespace == "new"


def test_another_program_with_our_label_is_none(world: World) -> None:
    """Such as a keepalive."""
    install(world, "keepalive", "--daemon", namespace="renew", kind="Deployment")
    found = of("status").installed
    assert found is not None
    assert not found.ref


def test_one_without_the_label_can_be_named(world: World) -> None:
    install(world, namespace="own", name="sync", labels={})
    found = of("status", "--installation=own/sync").installed
    assert found is not None
    assert found.ref == "own/sync"
    with pytest.raises(click.UsageError, match="there is no Deployment and no CronJob"):
        of("status", "--installation=own/other")
    with pytest.raises(click.UsageError, match="write auto, off or NAMESPACE/NAME"):
        of("status", "--installation=own")


def forbidden(*parts: str) -> Any:
    """An API that forbids the paths with these parts."""

    def fault(request: Request, number: int) -> Response | None:
        if any(part in request.path for part in parts):
            return answer(403, {"kind": "Status", "message": f"you may not read {request.path}"})
        return None

    return fault


def test_a_right_that_is_missing_is_said(world: World) -> None:
    """With the needed options the command goes on."""
    install(world)
    world.fault = forbidden("deployments", "cronjobs")
    found = of("run", "--dry-run", "--owner=a", "--eureka-url=http://e/eureka")
    assert found.owner == "a"
    assert "the installation could not be looked for: the Kubernetes API forbids" in notes(found)
    with pytest.raises(click.UsageError, match=r"Missing options .*: the installation could not"):
        of("run", "--dry-run")
    with pytest.raises(SourceUnknown, match="forbids"):
        of("status", "--installation=eurekube-sync/eurekube-sync")
    found = of("check", "--installation=eurekube-sync/eurekube-sync", "--owner=prod")
    assert (found.owner, found.eureka_url) == ("prod", "")
    assert "the settings of eurekube-sync/eurekube-sync could not be read: " in notes(found)
    assert "Give its options by hand, such as --owner and --namespace" in notes(found)


def test_rights_in_its_namespace_are_enough(world: World) -> None:
    """That of the manifests, or those of -n, where an installation of one namespace is."""
    install(world, namespace="rating", settings=SETTINGS | {"EUREKUBE_SYNC_NAMESPACE": "rating"})
    world.fault = forbidden("/apps/v1/deployments", "/batch/v1/cronjobs")
    found = of("status", "-n", "rating")
    assert (found.owner, notes(found)) == ("prod", "")


def test_a_config_map_that_may_not_be_read_is_no_setting(world: World) -> None:
    """Half of the settings would promise what the installation refuses."""
    install(world, "run", "--owner=prod", "--eureka-url=http://e/eureka")
    world.fault = forbidden("configmaps")
    found = of("status")
    assert (found.owner, found.eureka_url) == ("", "")
    assert "the settings of eurekube-sync/eurekube-sync could not be read: " in notes(found)


def test_an_api_that_gives_no_answer_is_left_to_the_command(world: World) -> None:
    """It says so itself."""

    def silent(request: Request, number: int) -> Response | None:
        raise ConnectionError("no route")

    world.fault = silent
    assert notes(of("status")) == ""


# --- What cannot be taken -------------------------------------------------------------------------


def test_a_file_of_the_pod_has_to_be_given_by_hand(world: World) -> None:
    """Without it Eureka is not asked; a dry run is refused. The URL is not used without login."""
    install(world, settings=SETTINGS | LOGIN)
    what = (
        "eurekube-sync/eurekube-sync has --eureka-password-file from a file or Secret of its pods"
    )
    found = of("status")
    assert (found.owner, found.eureka_url, found.eureka_username) == ("prod", "", None)
    assert found.scope.granted_only
    lacking = (
        f"its password is missing here: {what}; give --eureka-password-file or "
        "EUREKUBE_SYNC_EUREKA_PASSWORD here, too"
    )
    assert notes(found) == f"Eureka is not asked: {lacking}"
    assert found.installed is not None
    assert found.installed.without_eureka == lacking
    with pytest.raises(click.UsageError) as refused:
        of("run", "--dry-run")
    assert refused.value.message == f"{what}: give it here, too"


@pytest.mark.parametrize(
    ("words", "variable", "expected"),
    [
        (["--eureka-password-file=mine"], "", ("http://eureka/eureka", "joe", "mine")),
        ([], "s3cr3t", ("http://eureka/eureka", "joe", None)),
        (["--eureka-token-file=token"], "", ("http://eureka/eureka", None, None)),
        (["--eureka-url=http://localhost/eureka"], "", ("http://localhost/eureka", None, None)),
    ],
)
def test_a_login_of_ones_own_replaces_it(
    world: World,
    words: list[str],
    variable: str,
    expected: tuple[str, str | None, str | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A password of one's own belongs to the user of the installation, another user or URL does
    not."""
    install(world, settings=SETTINGS | LOGIN)
    if variable:
        monkeypatch.setenv(PASSWORD_VARIABLE, variable)
    found = of("run", "--dry-run", *words)
    assert (found.eureka_url, found.eureka_username, found.eureka_password_file) == expected
    assert notes(found) == ""


def secret(name: str) -> Any:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}}


def test_a_secret_is_never_read(world: World) -> None:
    """Neither one of a variable, nor one within another value, nor a whole one."""
    url = {"name": "EUREKUBE_SYNC_EUREKA_URL", "value": "http://joe:$(PASSWORD)@eureka/eureka"}
    sources = [
        {"configMapRef": {"name": "eurekube-sync"}},
        {"secretRef": {"name": "more"}},
        {"configMapRef": {"name": "no-such", "optional": True}},
    ]
    install(world, env=[secret("PASSWORD"), url], env_from=sources)
    found = of("status")
    assert (found.owner, found.eureka_url) == ("prod", "")
    assert "has --eureka-url from a file or Secret of its pods; give --eureka-url here" in notes(
        found
    )
    assert "has variables from the Secret more, which is not read" in notes(found)
    assert not [request.path for request in world.requests if "/secrets" in request.path]


def test_a_password_in_a_variable_is_not_taken(world: World) -> None:
    """It is a secret, wherever it stands."""
    settings = SETTINGS | {"EUREKUBE_SYNC_EUREKA_USERNAME": "joe", PASSWORD_VARIABLE: "s3cr3t"}
    install(world, settings=settings)
    found = of("status")
    assert found.eureka_url == ""
    assert PASSWORD_VARIABLE in notes(found)
    assert "s3cr3t" not in notes(found) + str(found)


def test_an_owner_of_a_secret_has_to_be_given(world: World) -> None:
    """Without it even a look would judge another's instances."""
    install(world, env=[secret("EUREKUBE_SYNC_OWNER")])
    with pytest.raises(click.UsageError, match="has --owner from a file or Secret of its pods"):
        of("status")
    assert "--owner is prod, and its own is not read" in notes(of("status", "--owner=prod"))


def test_settings_of_another_version_are_named(world: World) -> None:
    settings = SETTINGS | {"EUREKUBE_SYNC_SHARD": "1/3"}
    install(world, "run", "--passes=2", "--quota=5", "--daemon", settings=settings)
    found = of("status")
    assert found.owner == "prod"
    assert notes(found) == (
        "eurekube-sync/eurekube-sync has settings that this version does not know: "
        "EUREKUBE_SYNC_SHARD and --quota=5"
    )


def test_a_setting_that_cannot_be_used_is_the_installations(world: World) -> None:
    """The installation refuses it as well."""
    install(world, settings=SETTINGS | {"EUREKUBE_SYNC_OWNER": "Not_One"})
    with pytest.raises(click.UsageError) as refused:
        of("status")
    assert "the installation eurekube-sync/eurekube-sync has a setting that cannot be used: " in (
        refused.value.message
    )
    assert of("status", "--installation=off").owner == ""


def test_it_is_said_once(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr, and in the report as data."""
    install(world)
    params = read("status", "-o", "json", "--owner=test")
    said = capsys.readouterr().err
    assert said.count("settings of the installation eurekube-sync/eurekube-sync (CronJob)") == 1
    assert said.count("--owner is test, and not prod") == 1
    assert params["form"].installation["name"] == "eurekube-sync"


@pytest.mark.parametrize(
    ("kind", "works", "command"),
    [
        ("Deployment", False, "kubectl scale deployment a -n ops --replicas=1"),
        (
            "CronJob",
            False,
            """kubectl patch cronjob a -n ops --patch '{"spec":{"suspend":false}}'""",
        ),
        ("Deployment", True, ""),
    ],
)
def test_an_installation_that_does_not_work_is_started_by(
    kind: str, works: bool, command: str
) -> None:
    """The screens print the command."""
    found = installed.Installed(
        connection=cast(Connection, None), kind=kind, namespace="ops", name="a", works=works
    )
    assert found.deployed.start == command
