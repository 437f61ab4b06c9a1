"""What lines of Eureka servers do otherwise than the newest one: the contract suite asks this table,
and docs/compatibility.md shows it.

Each row is proven: on a line that has it, a test asserts what is done in its place, and on any other
line that it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Otherwise(Enum):
    """What a line does otherwise, and why the program does not mind."""

    BARE_404 = (
        "a 404 has no body",
        "the program takes both for an answer of Eureka",
    )
    STATUS_AS_JSON = (
        "`/status` can be had as JSON; newer ones answer 500 to that",
        "the program asks for XML",
    )
    NAME_OF_OVERRIDE = (
        "the JSON of an instance says `overriddenstatus`, not `overriddenStatus`",
        "the program reads both",
    )
    STATUS_IN_ANY_CASE = (
        "a status in lower case is taken; newer ones make it UNKNOWN",
        "the program writes upper case",
    )
    LENIENT_BODY = (
        "an unknown key in a port, and nested metadata, are taken; newer ones answer 400",
        "the program sends neither",
    )
    UNESCAPED_XML = (
        "a metadata key that is no XML name breaks the XML list; newer ones escape it",
        "no syncer can ask for such a key",
    )
    ALL_GZIPPED = (
        "the list of one app is gzipped as well as that of all, if the caller accepts it",
        "the program reads both",
    )
    NO_SPRING = (
        "the API begins at `/eureka/v2`, and there is no page and no JSON for unknown paths",
        "`--eureka-url` ends in `/eureka/v2`",
    )

    def __init__(self, what: str, why_it_works: str) -> None:
        self.what = what
        self.why_it_works = why_it_works


_BEFORE_2022 = frozenset({Otherwise.BARE_404, Otherwise.STATUS_AS_JSON})
LINES: Mapping[str, frozenset[Otherwise]] = {
    "Netflix-1.10": _BEFORE_2022 | {Otherwise.ALL_GZIPPED, Otherwise.NO_SPRING},
    "Edgware": _BEFORE_2022
    | {
        Otherwise.NAME_OF_OVERRIDE,
        Otherwise.STATUS_IN_ANY_CASE,
        Otherwise.LENIENT_BODY,
        Otherwise.UNESCAPED_XML,
    },
    "Greenwich": _BEFORE_2022 | {Otherwise.UNESCAPED_XML},
    "Hoxton": _BEFORE_2022,
    "2020.0": _BEFORE_2022,
    "2021.0": _BEFORE_2022,
    "2023.0": frozenset(),
    "2025.0": frozenset(),
    "2025.1": frozenset(),
}
"""Of each line."""
