"""Where the cluster is."""

from __future__ import annotations

import click

from eurekube_sync.cli.completing import complete_contexts
from eurekube_sync.cli.options.declare import ENVIRONMENT_PREFIX, Section, group, option
from eurekube_sync.cli.values import NAME, File
from eurekube_sync.model.ports import EndpointsSource
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesAccess:
    kubeconfig: str | None = None
    context: str | None = None
    endpoints_source: EndpointsSource = "slices"


from_option = option(
    "--from",
    "dumps",
    variable=False,
    section=Section.COMMAND,
    metavar="FILE",
    multiple=True,
    help="With --dry-run: read the cluster from this output of kubectl get -o json or -o yaml. Write - for standard "
    "input. May be repeated. Only namespaces in the files are planned.",
)

kubernetes_options = group(
    "kubernetes",
    KubernetesAccess,
    option(
        "--kubeconfig",
        type=File(),
        default=None,
        envvar=[ENVIRONMENT_PREFIX + "KUBECONFIG", "KUBECONFIG"],
        help="Path of the kubeconfig. Default: the pod's service account, else ~/.kube/config.",
    ),
    option(
        "--context",
        type=NAME,
        default=None,
        shell_complete=complete_contexts,
        help="Context of the kubeconfig. Default: its current one.",
    ),
    option(
        "--endpoints-source",
        type=click.Choice(["slices", "endpoints"]),
        default="slices",
        help="Where the addresses of pods are read from. An old cluster has Endpoints only.",
    ),
    section=Section.WHERE,
)
