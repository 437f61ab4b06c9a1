"""How the pure part of a pass grows: claims, plan and brake for 600, 6,000 and 60,000 instances of 10 pods a syncer,
and what the plan takes more because one syncer of all is suspended.

Run `python bench/plan_scale.py`. Looks for reference cycles as the program does. Prints the machine, seconds and peak
memory of each size; only the ratios between the sizes say something about the code.
"""

from __future__ import annotations

import platform
import resource
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from eurekube_sync.brake import Brake, apply_brake
from eurekube_sync.cli.garbage import look_rarely_for_cycles
from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.eureka import LeaseTimes, ObservedInstance
from eurekube_sync.model.kubernetes import (
    ClusterView,
    Endpoint,
    EndpointPort,
    EndpointSlice,
    PodRef,
    Service,
    ServicePort,
    SyncerObject,
)
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.sources import Complete, Listed
from eurekube_sync.observe.eureka import Observed, observe
from eurekube_sync.plan import Plan, make_plan
from eurekube_sync.plan.filters import LEFT_ALONE

PODS = 10
T = TypeVar("T")


def view(syncers: int) -> ClusterView:
    """A cluster of this many syncers, ten to a namespace, each with a Service of ten ready pods. The first of them was
    suspended at 0 s."""
    objects: dict[str, list[SyncerObject]] = {}
    services: dict[str, list[Service]] = {}
    slices: dict[str, list[EndpointSlice]] = {}
    for number in range(syncers):
        namespace, name = f"team-{number // 10}", f"app-{number}"
        objects.setdefault(namespace, []).append(
            SyncerObject(
                namespace=namespace,
                name=name,
                uid=f"uid-{number}",
                generation=1,
                resource_version="1",
                created=number,
                spec={"mode": "pod", "selector": {"app": name}, "suspend": not number},
            )
        )
        services.setdefault(namespace, []).append(
            Service(
                namespace=namespace,
                name=name,
                labels={"app": name},
                cluster_ips=("10.96.0.1",),
                ip_families=("IPv4",),
                ports=(ServicePort(name="http", port=80, target="http"),),
            )
        )
        slices.setdefault(namespace, []).append(
            EndpointSlice(
                namespace=namespace,
                name=f"{name}-x",
                service=name,
                address_type="IPv4",
                ports=(EndpointPort(name="http", port=8080),),
                endpoints=tuple(
                    Endpoint(
                        address=f"10.{number // 250}.{number % 250}.{pod + 1}",
                        pod=PodRef(f"{name}-{pod}", f"pod-{number}-{pod}"),
                    )
                    for pod in range(PODS)
                ),
            )
        )
    return ClusterView(
        identity=Complete(data="cluster"),
        syncers=_listed(objects),
        services=_listed(services),
        slices=_listed(slices),
        crd_live=Complete(data=True),
    )


def _listed(found: dict[str, list[T]]) -> Listed[T]:
    by_namespace = {namespace: Complete(data=tuple(items)) for namespace, items in found.items()}
    return Listed(by_namespace=by_namespace, elsewhere=Complete(data=()))


def registry(desired: Desired, ownership: Ownership) -> Observed:
    """A registry that holds all that is desired but every hundredth instance."""
    wanted = [w.instance for n, key in enumerate(desired.wanted_by) if n % 100 and (w := desired.wanted(key))]
    instances = tuple(ObservedInstance(instance=i, last_dirty_timestamp=1) for i in wanted)
    return observe(Complete(data=instances), ownership, Scope(), asked=0)


def suspending(plan: Plan, desired: Desired, observed: Observed) -> Plan:
    """What a draft of the plan takes more while a syncer is suspended."""
    for rule in LEFT_ALONE:
        plan = rule(plan, desired, observed, ())
    return plan


def timed(what: Callable[[], T]) -> tuple[T, float]:
    """Its answer, and the processor seconds that it took."""
    begun = time.process_time()
    answer = what()
    return answer, time.process_time() - begun


def main() -> None:
    """Prints one line a size."""
    look_rarely_for_cycles()
    ownership = Ownership(owner="bench", cluster="cluster")
    naming = Naming(ownership=ownership, lease=LeaseTimes(30, 300))
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    heads = ("claims s", "plan s", "suspend s", "brake s", "us each", "peak MB")
    print(f"{'instances':>10}" + "".join(f"{head:>10}" for head in heads))
    for syncers in (60, 600, 6000):
        seen = view(syncers)
        desired, claiming = timed(partial(claim_all, seen, naming, Scope()))
        observed = registry(desired, ownership)
        plan, planning = timed(partial(make_plan, desired, observed))
        restrained, suspending_one = timed(partial(suspending, plan, desired, observed))
        _, braking = timed(partial(apply_brake, plan, observed, Brake()))
        count = syncers * PODS
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        each = (claiming + planning + braking) / count * 1e6
        seconds = (claiming, planning, suspending_one, braking)
        print(f"{count:>10}" + "".join(f"{one:>10.3f}" for one in seconds) + f"{each:>10.1f}{peak:>10.0f}")
        assert len(plan.changes) == count / 100, "the plan is not the one that was meant"
        assert len(restrained.changes) <= len(plan.changes), "a suspension adds nothing"


if __name__ == "__main__":
    main()
