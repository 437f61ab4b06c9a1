"""Lines to copy, for `--help`: what each does, and the line. Owner and URL of Eureka are given as variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

EXAMPLES: Mapping[str, Sequence[tuple[str, str]]] = {
    "": (
        ("See it work, with neither a cluster nor a Eureka:", "eurekube-sync demo"),
        ("See what a pass would do:", "eurekube-sync run --dry-run"),
        ("Find out why a Service is not in Eureka:", "eurekube-sync explain svc/shop/orders"),
    ),
    "run": (
        (
            "See what a pass would do, and write nothing:",
            "eurekube-sync run --owner prod --eureka-url http://eureka/eureka --dry-run",
        ),
        (
            "Go on until a signal, with metrics; owner and URL are given as variables:",
            "eurekube-sync run --daemon --listen :8080",
        ),
        ("Release held removals by the plan id that a report names:", "eurekube-sync run --approve a73bb933c352"),
    ),
    "keepalive": (
        ("Renew all of our instances once:", "eurekube-sync keepalive"),
        ("Renew until run is back:", "eurekube-sync keepalive --daemon"),
        ("Only those of one namespace:", "eurekube-sync keepalive -n shop --daemon"),
    ),
    "status": (
        ("All that is broken, and why:", "eurekube-sync status"),
        ("Every syncer of one namespace:", "eurekube-sync status -n shop --all"),
        ("Watch what the brake holds:", "eurekube-sync status --condition RemovalHeld --watch"),
    ),
    "explain": (
        ("Why is this Service not in Eureka?", "eurekube-sync explain svc/shop/orders"),
        ("Why is this pod not registered?", "eurekube-sync explain pod/shop/orders-7d9f-x2x4k"),
        ("Who registered this address?", "eurekube-sync explain 10.0.0.7:8080"),
    ),
    "check": (
        ("Can this installation work?", "eurekube-sync check"),
        ("Before the installation, with the account of the person who installs it:", "eurekube-sync check --pre"),
        ("In a pipeline: exit 7 if something fails:", "eurekube-sync check -o json"),
    ),
    "orphans": (
        ("Which of our instances have no syncer any more?", "eurekube-sync orphans"),
        ("In a script: exit 5 if there is any:", "eurekube-sync orphans --detailed-exitcode"),
        ("As data:", "eurekube-sync orphans -o json"),
    ),
    "owner": (
        ("Take over what pods of this app registered themselves:", "eurekube-sync owner adopt --app RATING"),
        ("Change the name of the owner:", "eurekube-sync owner rename old-name new-name"),
        ("See what an uninstallation would cancel:", "eurekube-sync owner purge --dry-run"),
    ),
    "owner adopt": (
        ("See what would be taken over:", "eurekube-sync owner adopt --app RATING --dry-run"),
        ("Only one instance:", "eurekube-sync owner adopt --app RATING --address 10.0.0.7:8080"),
        (
            "All instances of a cluster that this one replaces:",
            "eurekube-sync owner adopt --cluster 341a66fe-0d2c-4b54-9f39-2f6d1c9a8a11",
        ),
    ),
    "owner rename": (
        ("See what would move:", "eurekube-sync owner rename old-name new-name --dry-run"),
        ("Move all instances to the new name:", "eurekube-sync owner rename old-name new-name"),
        (
            "Watch longer whether somebody still renews the instances:",
            "eurekube-sync owner rename old-name new-name --observe 2m",
        ),
    ),
    "owner purge": (
        ("See what would be cancelled:", "eurekube-sync owner purge --dry-run"),
        ("Only one namespace:", "eurekube-sync owner purge -n shop"),
        (
            "The instances of a cluster that is lost, without a question:",
            "eurekube-sync owner purge --cluster 341a66fe-0d2c-4b54-9f39-2f6d1c9a8a11 --yes",
        ),
    ),
    "replay": (
        ("What did the recorded passes decide?", "eurekube-sync replay /var/lib/eurekube-sync"),
        ("Why was this address removed?", "eurekube-sync replay /var/lib/eurekube-sync 10.0.0.7"),
        ("All that one pass decided, planned again:", "eurekube-sync replay /var/lib/eurekube-sync --at 03:12"),
    ),
    "validate": (
        ("All manifests of a folder:", "eurekube-sync validate manifests/"),
        ("What a chart makes:", "helm template my-app | eurekube-sync validate -"),
        ("For a program:", "eurekube-sync validate -o json syncer.yaml"),
    ),
    "crd": (
        ("Install it, or bring it to this version:", "eurekube-sync crd | kubectl apply --server-side -f -"),
        ("See what would change in the cluster:", "eurekube-sync crd | kubectl diff -f -"),
        ("Keep it in a file:", "eurekube-sync crd > eurekasyncer-crd.yaml"),
    ),
    "demo": (
        ("See the story:", "eurekube-sync demo"),
        ("Leave both servers running, to try commands on them:", "eurekube-sync demo --serve"),
        ("Only its report, without pauses:", "eurekube-sync demo | cat"),
    ),
    "version": (
        ("All versions, and whether Eureka answers:", "eurekube-sync version"),
        ("Only the program and its Python, without asking a server:", "eurekube-sync version --client"),
        ("For a program:", "eurekube-sync version -o json"),
    ),
    "help": (
        ("What a command does, with its options:", "eurekube-sync help run"),
        ("What an exit code means:", "eurekube-sync help exit-codes"),
        ("Which variables there are:", "eurekube-sync help environment"),
    ),
    "completion": (
        ("In bash, for this shell; in ~/.bashrc for every shell:", "source <(eurekube-sync completion bash)"),
        ("In zsh, after compinit:", "source <(eurekube-sync completion zsh)"),
        ("In fish:", "eurekube-sync completion fish > ~/.config/fish/completions/eurekube-sync.fish"),
    ),
}
"""By the words after `eurekube-sync`."""
