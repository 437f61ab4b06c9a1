"""What `--help` says of each option, by its name. Where commands differ, the other sentence stands with its option."""

from __future__ import annotations

from collections.abc import Mapping

HELP: Mapping[str, str] = {
    "--eureka-batch": "Renew, register and cancel up to 250 instances in one call to each Eureka server. auto: only if "
    "the servers say that --eureka-url names all of their replicas. on: without asking the servers.",
    "--from": "With --dry-run: read the cluster from this output of kubectl get -o json or -o yaml. Write - for "
    "standard input. May be repeated. Only namespaces in the files are planned.",
    "--concurrency": "How many calls to Eureka or Kubernetes may run at the same time.",
    "--call-timeout": "The longest time to wait for one answer.",
    "--kubeconfig": "Path of the kubeconfig. Default: the pod's service account, else ~/.kube/config.",
    "--context": "Context of the kubeconfig. Default: its current one.",
    "--endpoints-source": "Where the addresses of pods are read from. An old cluster has Endpoints only.",
    "--eureka-url": "Address of Eureka with its path, such as http://eureka.example.com:8761/eureka. For several peers "
    "repeat the option, or put commas between the addresses. The preferred one comes first.",
    "--eureka-username-file": "File that holds the user name; read again when it changes.",
    "--eureka-password-file": "File that holds the password; read again when it changes.",
    "--eureka-ca-file": "PEM file of the authorities to trust for Eureka. Default: the public ones.",
    "--eureka-client-cert": "PEM file of the client certificate for Eureka.",
    "--eureka-client-key": "PEM file of the certificate's key.  [default: the file of the certificate]",
    "--eureka-insecure-skip-tls-verify": "Do not verify Eureka's certificate. Anybody can then pretend to be Eureka.",
    "--owner": "Name of this installation. It is part of each instance id; use a different one in each cluster.",
    "--lock": "Lease object by which only one of several copies of run works at a time. It also shows when the last "
    "good pass was. auto: the Lease in the pod's own namespace. Outside of a cluster, run takes no lock, and other "
    "commands read the Lease in the namespace eurekube-sync. run --dry-run takes no lock, nor does run --approve "
    "without --daemon.",
    "--syncer-class": "Only the syncers with this spec.syncerClass. Default: those without one.",
    "--allow-namespace": "Let syncers of namespace FROM select Services of namespace TO. * is any namespace; may be "
    "repeated.",
    "--require-app-grant": "Serve a syncer only if its Namespace grants the syncer's names and hosts. Grants are the "
    "annotations eurekube.io/allowed-apps and eurekube.io/allowed-hosts.",
    "--max-syncers-per-namespace": "Serve at most this number of syncers in a namespace, the oldest first.",
    "--max-instances-per-namespace": "Register nothing new for a namespace that has this number of instances.",
    "--approve": "Release held removals. A plan id releases exactly the removals that were held under it. A file is a "
    "dry run saved with -o json; it releases those of its removals that are still planned.",
    "--passes": "How many passes to run. The exit code is that of the last one.",
    "--interval": "Time from the start of a pass to the start of the next.",
    "--registry-cache": "The greatest age of Eureka's cached lists. The finalizer of a deleted syncer stays at least "
    "this long.",
    "--brake-percent": "Hold removals if they are more than this percentage of all our UP instances, or of the UP "
    "instances of one app. Removals with evidence, such as a terminating pod, do not count.",
    "--brake-count": "With this number of removals or fewer, --brake-percent holds nothing.",
    "--brake-ceiling": "Hold removals of more than this number of UP instances, whatever their percentage.",
    "--brake-apps-percent": "Hold removals if more than this percentage of our apps, and more than one app, would have "
    "no UP instance left.",
    "--listen": "Serve /metrics, /livez, /readyz and a page for people at this address, such as :8080. Anybody who can "
    "reach the address can read them.",
    "--metrics-file": "Write the metrics into this file after each pass, for the textfile collector of node_exporter.",
    "--record": "Keep in this folder what each pass read and decided, for eurekube-sync replay. Secrets are left out.",
    "--record-limit": "The greatest size of the folder of --record. The oldest records are deleted first.",
    "--list-renewals": "With -o json or yaml: list each renewed instance, and not only their number.",
    "--cluster": "Renew only instances of the cluster with this UID. Default: all instances of the owner.",
    "--condition": "Show only syncers with this condition or reason, such as RemovalHeld, Ready=False or NotReady.",
    "--observe": "How long to watch whether somebody still renews the instances.  [default: twice the renewal period "
    "of the instances, plus 5s]",
    "--address": "Only the instance at this address; may be repeated. Default: all instances of the app that a syncer "
    "wants.",
    "--at": "Show the last pass that began at or before this time, such as 03:12 or 2026-11-23T03:12:05Z. Times are "
    "UTC.",
}
