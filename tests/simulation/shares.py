"""Stories that end with a limit in percent, of pods that are not all ready, or beside others under
the same VIP.

What they are to show: `rest` says that as many are UP as the limit asks for, and `limits` that
there are no more.
"""

from __future__ import annotations

import random
from dataclasses import replace

from . import events as e
from .asked import Asked, Limit
from .story import QUIET, Story


def with_a_share(base: Story) -> Story:
    """Adds an app of some pods, of which a percentage should be UP."""
    dice = random.Random(f"a share {base.seed}")
    begins = base.ends - QUIET
    app = dice.choice(
        sorted({event.app for event in base.events if isinstance(event, e.ServiceApplied)})
    )
    limit = Limit(
        kind=dice.choice(("pods", "share")), value=dice.choice((10, 25, 34, 50, 51, 67, 80))
    )
    pods = range(20, 20 + dice.randint(4, 9))
    others = range(dice.choice((0, 1, 2, 5))) if limit.kind == "share" else range(0)
    events: list[e.Event] = [
        *base.events,
        e.ServiceApplied(at=begins, app=app),
        *(e.PodEnds(at=begins, app=app, number=number) for number in range(5)),
        *(
            e.StrangerRegisters(at=begins, who="service", app=app, ip=f"10.0.3.{1 + number}")
            for number in others
        ),
        *(
            e.PodStarted(
                at=begins, app=app, number=number, ip=f"10.0.2.{number}", ready=dice.random() < 0.6
            )
            for number in pods
        ),
        e.SyncerApplied(at=begins + 1, name=app, app=app, asked=Asked(limit=limit)),
    ]
    if dice.random() < 0.4:
        at = round(begins + dice.uniform(50, 90), 1)
        events += [
            e.PodTurns(at=at, app=app, number=number, ready=dice.random() < 0.5)
            for number in dice.sample(pods, 2)
        ]
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        ends=max(event.over for event in events) + QUIET,
    )
