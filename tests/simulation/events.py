"""Events of the world. An event that finds nothing to change does nothing, so any of them can be
left out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .asked import PLAIN, Asked
from .world import APPS, service_manifest, syncer_manifest, syncer_path

if TYPE_CHECKING:
    from .stage import Stage

_SYNCERS = "apis/eurekube.io/v1/eurekasyncers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(ABC):
    """An event at second `at`."""

    at: float

    @property
    def over(self) -> float:
        """When the last of its consequences has happened."""
        return self.at

    @abstractmethod
    def happen(self, stage: Stage) -> str:
        """Makes it happen, and returns a sentence about it; empty if there was nothing to
        change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncerApplied(Event):
    """A person creates a syncer, or changes its spec."""

    name: str
    app: str
    app_name: str = ""
    asked: Asked = PLAIN

    def happen(self, stage: Stage) -> str:
        spec: dict[str, object] = {
            "selector": {"app": self.app},
            "appName": self.app_name or self.app,
        }
        done = stage.world.apply(
            _SYNCERS, syncer_manifest(self.name, self.app, spec | self.asked.written())
        )
        named = f" as {self.app_name}" if self.app_name else ""
        asks = f" ({self.asked})" if self.asked != PLAIN else ""
        return f"syncer {self.name} of app {self.app}{named}{asks} is {done}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncerDeleted(Event):
    """A person deletes a syncer."""

    name: str
    app: str

    def happen(self, stage: Stage) -> str:
        there = stage.world.delete(syncer_path(APPS[self.app], self.name))
        return f"a person deletes syncer {self.name}" if there else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceApplied(Event):
    """A person applies the Service of an app."""

    app: str

    def happen(self, stage: Stage) -> str:
        done = stage.world.apply("api/v1/services", service_manifest(self.app))
        return f"Service {self.app} is {done}" if done == "created" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceDeleted(Event):
    """A person deletes the Service of an app."""

    app: str

    def happen(self, stage: Stage) -> str:
        there = stage.world.delete(f"/api/v1/namespaces/{APPS[self.app]}/services/{self.app}")
        return f"Service {self.app} is deleted" if there else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodStarted(Event):
    """A pod starts, ready at once or not."""

    app: str
    number: int
    ip: str
    ready: bool = True
    gated: bool = False
    """Whether its template has our readiness gate."""

    def happen(self, stage: Stage) -> str:
        name = f"{self.app}-{self.number}"
        ip = stage.world.start_pod(self.app, name, self.ip, ready=self.ready, gated=self.gated)
        gate = ", behind the gate" if self.gated else ""
        return (
            f"pod {name} starts at {ip}, {'ready' if self.ready else 'not ready'}{gate}"
            if ip
            else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEnds(Event):
    """A pod is deleted, and terminates for a while. Without grace it vanishes."""

    app: str
    number: int
    grace: float = 0.0

    @property
    def over(self) -> float:
        return self.at + self.grace

    def happen(self, stage: Stage) -> str:
        name = f"{self.app}-{self.number}"
        there = stage.world.end_pod(APPS[self.app], name, grace=self.grace)
        how = f"terminates for {self.grace:g} s" if self.grace else "vanishes"
        return f"pod {name} {how}" if there else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodMoves(Event):
    """A pod is replaced at once by one of the same name at another address."""

    app: str
    number: int
    ip: str
    gated: bool = False

    def happen(self, stage: Stage) -> str:
        name = f"{self.app}-{self.number}"
        if not stage.world.end_pod(APPS[self.app], name, grace=0):
            return ""
        ip = stage.world.start_pod(self.app, name, self.ip, ready=True, gated=self.gated)
        return f"pod {name} moves to {ip}" if ip else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTurns(Event):
    """A pod becomes ready, or not."""

    app: str
    number: int
    ready: bool

    def happen(self, stage: Stage) -> str:
        name = f"{self.app}-{self.number}"
        there = stage.world.turn(APPS[self.app], name, ready=self.ready)
        return f"pod {name} turns {'ready' if self.ready else 'unready'}" if there else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllPodsTurn(Event):
    """Every pod turns at once, as when the node controller is lost."""

    ready: bool

    def happen(self, stage: Stage) -> str:
        pods = stage.world.pods()
        for pod in pods:
            stage.world.turn(
                pod["metadata"]["namespace"], pod["metadata"]["name"], ready=self.ready
            )
        return (
            f"all {len(pods)} pods turn {'ready' if self.ready else 'unready'} at once"
            if pods
            else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StrangerRegisters(Event):
    """Another client registers an instance beside ours."""

    who: str
    """`service`: one of the data centre, under the same app and VIP; `itself`: the pod's own Eureka
    client; `owner`: another owner in this cluster; `cluster`: our owner in another cluster; `id`:
    under exactly our id."""
    app: str
    ip: str
    by_name: bool = False
    """Whether its host name is a pod's, as by Spring's default: nobody outside of the cluster
    resolves it."""

    def happen(self, stage: Stage) -> str:
        stranger = stage.stranger(self.who, self.app, self.ip)
        if self.by_name:
            stranger = replace(stranger, host=f"{self.app}-of-{self.ip.replace('.', '-')}")
        if stage.is_ours(stranger.key):
            return ""  # a register over a living lease would be that of a broken client
        stage.world.register(stranger)
        return f"a stranger ({self.who}) registers {stranger.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StrangerLeaves(Event):
    """The stranger cancels its instance."""

    who: str
    app: str
    ip: str

    def happen(self, stage: Stage) -> str:
        key = stage.stranger(self.who, self.app, self.ip).key
        if stage.is_ours(key):
            return ""
        return (
            f"the stranger ({self.who}) cancels {key}"
            if stage.world.ask_for("DELETE", key) == 200
            else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTurns(Event):
    """The pod's own Eureka client turns its instance from UP, or back to UP."""

    app: str
    ip: str
    up: bool

    def happen(self, stage: Stage) -> str:
        stranger = stage.stranger("itself", self.app, self.ip)
        stands = stage.world.standing(0).get(stranger.key)
        if stands is None:
            return ""
        status = "UP" if self.up else "DOWN"
        stage.world.register(replace(stranger, status=status, host=stands[0].host_name or ""))
        return f"the pod's own client says that {stranger.key} is {status}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientEnds(Event):
    """The pod's own Eureka client ends without a cancel. Its instance stays UP as long as its lease
    lasts."""

    app: str
    ip: str

    def happen(self, stage: Stage) -> str:
        key = stage.stranger("itself", self.app, self.ip).key
        if not stage.world.end_client(key):
            return ""
        return f"the pod's own client of {key} ends without a cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonOverrides(Event):
    """A person puts one of our instances out of service."""

    which: int

    def happen(self, stage: Stage) -> str:
        key = stage.one_of_ours(self.which)
        if key is None or stage.world.ask_for("PUT", key, "/status", value="OUT_OF_SERVICE") != 200:
            return ""
        stage.judge.overrides.asked_out(key, stage.clock.time)
        return f"a person puts {key} out of service"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonReleases(Event):
    """The person removes every override."""

    def happen(self, stage: Stage) -> str:
        freed = [
            key
            for key in sorted(stage.judge.overrides.out)
            if stage.world.ask_for("DELETE", key, "/status", value="UP") == 200
        ]
        stage.judge.overrides.out.clear()
        return f"a person takes the override of {', '.join(map(str, freed))} back" if freed else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EurekaRestarts(Event):
    """A Eureka server loses its memory."""

    peer: int = 0
    warm_up: float = 0.0

    @property
    def over(self) -> float:
        return self.at + self.warm_up

    def happen(self, stage: Stage) -> str:
        peer = self.peer % len(stage.world.eurekas)
        stage.world.restart_eureka(peer, warm_up=self.warm_up)
        stage.judge.eureka_restarted(peer, self.warm_up)
        warming = f" and warms up for {self.warm_up:g} s" if self.warm_up else ""
        return f"Eureka {peer + 1} restarts, empty{warming}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockJumps(Event):
    """The wall clock of the program's machine is wrong for a while."""

    by: float
    lasts: float

    @property
    def over(self) -> float:
        return self.at + self.lasts

    def happen(self, stage: Stage) -> str:
        stage.set_wall_clock(self.by)
        stage.clock.at(stage.clock.time + self.lasts, lambda: stage.set_wall_clock(0.0))
        return f"the program's wall clock is wrong by {self.by:+g} s, for {self.lasts:g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondCopyRuns(Event):
    """Another copy of the program makes a pass, whatever the first one is doing."""

    def happen(self, stage: Stage) -> str:
        return stage.run_second_copy()


@dataclass(frozen=True, slots=True, kw_only=True)
class CrdDeleted(Event):
    """Somebody deletes the CRD; later it is installed again, and then the syncers."""

    lasts: float
    empty_for: float

    @property
    def over(self) -> float:
        return self.at + self.lasts + self.empty_for

    def happen(self, stage: Stage) -> str:
        if not stage.world.delete_crd():
            return ""
        stage.clock.at(stage.clock.time + self.lasts, lambda: self._restored(stage))
        return "somebody deletes the CRD"

    def _restored(self, stage: Stage) -> None:
        lost = stage.world.restore_crd()
        stage.happened("finalizers are stripped, and the CRD is installed again, without syncers")
        stage.clock.at(stage.clock.time + self.empty_for, lambda: self._filled(stage, lost))

    def _filled(self, stage: Stage, lost: list[dict[str, object]]) -> None:
        stage.world.recreate(lost)
        stage.happened(f"{len(lost)} syncers are created again")
