"""Makes docs/troubleshooting.md from the program's own tables: `python
docs/troubleshooting_page.py` writes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.explain.links import Check
from eurekube_sync.model.reasons import Reason, Topic

PAGE = Path(__file__).parent / "troubleshooting.md"
_WIDTH = 120

_HEAD = """\
# Troubleshooting

<!-- Made by `python docs/troubleshooting_page.py` from the tables of the program: Reason, Check, ExitCode -->

Begin with one of these. Neither writes anything, and both work with the rights of a developer in one namespace.

```sh
eurekube-sync status -n shop
eurekube-sync explain svc/shop/orders
```

`explain` also takes a syncer (`shop/orders`), a pod (`pod/shop/orders-a`), a workload (`deploy/shop/orders`, or `sts`,
`ds`), an import (`import/shop/review`), the name of an app, VIP address or pod, `IP:PORT` or an instance id. A `?`
marks a requirement that it could not check. Both commands use the [settings of the
installation](commands.md#the-settings-of-the-installation). SINCE in `status` is `-` where nothing shows since when the
reason holds.

A developer needs the right to list `eurekasyncers`, `services`, `endpointslices` and `pods` in the namespace of `-n`.
Without the right to read the installation, give its owner and Eureka's URL by hand. With the right to read the
[lock](running.md#the-lock) they say when the last good pass was, and what the passes since then said. The program may
lack a right that you have, or not reach a Eureka that you reach, or the other way round: `no pass was good for 14 min`
has the words of the program. Syncers that its passes cannot judge are not in sync.

## Reasons

Conditions, events, `explain` and `status` use these reasons. `kubectl describe esync NAME` shows the conditions, and at
`Help` the address of the reason's section here. If a syncer is [not served](glossary.md), its instances are renewed.
Such an instance is removed only if its pod is gone, or if another pod has its address and port. The page on
[grants](scope.md#grants) has exceptions.
"""
_CHECKS = """\
## Checks

`eurekube-sync check` says whether an installation can work, and changes nothing. Use the account and the options of the
installation: it checks the rights of the account that calls it. The exit code is 7 if a check fails, and 0 if there are
only warnings. `--pre` checks what is needed before the installation, with the account of the person who installs.
"""
_CODES = """\
## Exit codes

[Commands](commands.md#exit-codes) has the meaning of each.
"""
_NOTHING = "Nothing is to be done."
_ABOUT = {Topic.UNREAD: "An unknown is never treated as missing."}


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_reasons(), _CHECKS, *_checks(), _CODES, *_codes()])


def _reasons() -> Iterator[str]:
    for topic in Topic:
        about = _ABOUT.get(topic, "")
        yield f"**{topic}.** {about}".rstrip() + "\n"
        for reason in Reason:
            if reason.topic is topic:
                yield f"### {reason}\n"
                yield _paragraph(
                    reason.meaning, f"**Do**: {reason.cure}" if reason.cure else _NOTHING
                )


def _checks() -> Iterator[str]:
    for check in Check:
        yield f"#### {check}\n"
        yield _paragraph(check.meaning, f"**Do**: {check.cure}")


def _codes() -> Iterator[str]:
    for code in ExitCode:
        yield f"#### {code.value} {code.name}\n"
        yield _paragraph(f"**Do**: {code.cure}" if code.cure else _NOTHING)


def _paragraph(*sentences: str) -> str:
    return fill(" ".join(sentences), _WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page().rstrip("\n") + "\n", encoding="utf-8")
