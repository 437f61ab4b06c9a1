"""`crd`: prints the CustomResourceDefinition, for `kubectl apply -f -`."""

from __future__ import annotations

import click

from eurekube_sync.cli.options.command import Command
from eurekube_sync.manifests import crd_text


@click.command(cls=Command, short_help="Print the CRD, for kubectl apply -f -")
def command() -> None:
    """Print the CRD: eurekube-sync crd | kubectl apply -f -"""
    click.echo(crd_text(), nl=False)
