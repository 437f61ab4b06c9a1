"""The reasons of conditions, events, explanations and reports, each with its meaning and its cure.

docs/troubleshooting.md is made from this table."""

from __future__ import annotations

from enum import StrEnum


class Topic(StrEnum):
    """What a reason is about: the groups of the page."""

    SPEC = "The spec"
    INSTALLATION = "The installation"
    SERVICES = "Services and ports"
    PODS = "Pods"
    ASKED_FOR = "What somebody asked for"
    OTHERS = "Other instances"
    IMPORTS = "Imports"
    REMOVALS = "Removals"
    EUREKA = "Eureka"
    UNREAD = "What could not be read"
    WELL = "Nothing is wrong"


class Reason(StrEnum):
    """A reason, with its group, what it means, and what to do. The texts are Markdown. Without a
    cure, nothing is to be done."""

    topic: Topic
    meaning: str
    cure: str

    # The defaults are only for lookups by value: `Reason("InSync")`.
    def __new__(
        cls, value: str, topic: Topic = Topic.WELL, meaning: str = "", cure: str = ""
    ) -> Reason:
        reason = str.__new__(cls, value)
        reason._value_ = value
        reason.topic, reason.meaning, reason.cure = topic, meaning, cure
        return reason

    # The spec
    INVALID_SPEC = (
        "InvalidSpec",
        Topic.SPEC,
        "A field has a wrong value, or a name that this version does not know.",
        "Correct the field that the message names. `eurekube-sync validate FILE` checks the "
        "manifest offline.",
    )
    INVALID_NAME = (
        "InvalidName",
        Topic.SPEC,
        "An app name, a VIP address or `service.hostname` cannot be a name in Eureka.",
        "Correct the name that the message shows. If it is the name of an app that comes from "
        "`selector.app` or a Service, set `appName`.",
    )
    INVALID_METADATA = (
        "InvalidMetadata",
        Topic.SPEC,
        "A key or value of the metadata cannot be written to Eureka, or `metadata` has more than "
        "4096 bytes in all.",
        "Correct what the message names.",
    )
    NO_HOST_NAME = (
        "NoHostName",
        Topic.SPEC,
        "The host name that the spec asks for cannot be made, or is too long.",
        "Set `hostName: ip`, or a shorter suffix.",
    )
    IGNORED_ANNOTATION = (
        "IgnoredAnnotation",
        Topic.SPEC,
        "An annotation has a value that this version does not know, so it has no effect.",
        "Write the value that the message names, or remove the annotation.",
    )
    WARNING = (
        "Warning",
        Topic.SPEC,
        "The syncer is served, and something about it is probably not as its author wants it.",
        "See the message, which says what.",
    )

    # The installation
    NO_SYNCER = (
        "NoSyncer",
        Topic.INSTALLATION,
        "No EurekaSyncer has that name, selects the Service, or registers the instance.",
        "Apply a syncer. For a Service, `explain` prints the smallest one.",
    )
    NOTHING_FOUND = (
        "NothingFound",
        Topic.INSTALLATION,
        "Nothing has that name. `explain` shows similar ones.",
        "Check the name. The name of an app may differ from that of its Service.",
    )
    NO_INSTALLATION = (
        "NoInstallation",
        Topic.INSTALLATION,
        "No installation has this syncer in its [scope](scope.md), or no pass runs.",
        "Remove `syncerClass`, or ask the operator.",
    )
    OTHER_CLASS = (
        "OtherClass",
        Topic.INSTALLATION,
        "The syncer has another class than this installation serves, or none.",
        "If this installation should serve it, correct `spec.syncerClass`, or give the class with "
        "`--syncer-class`.",
    )
    DELETING = (
        "Deleting",
        Topic.INSTALLATION,
        "The syncer is being deleted, so its instances are removed first.",
        "Wait. If the syncer stays, its condition `Synced` says why: see [deleting a "
        "syncer](running.md#deleting-a-syncer).",
    )
    ABANDONED = (
        "Abandoned",
        Topic.INSTALLATION,
        "The deletion of the syncer did not wait for its instances, because of the annotation "
        "`eurekube.io/abandon`.",
        "`eurekube-sync orphans` lists those that are left. A later pass cancels them, or they "
        "expire.",
    )
    OWNER_CLASH = (
        "OwnerClash",
        Topic.INSTALLATION,
        "Another cluster has the same owner name, or another owner serves the same syncers or "
        "imports.",
        "Give each cluster its own `--owner`. For one cluster, see [two "
        "owners](owner.md#two-owners-in-one-cluster).",
    )
    OTHER_OWNER = (
        "OtherOwner",
        Topic.INSTALLATION,
        "Another owner serves syncers of this installation, which goes on: it was there first, or "
        "serves more.",
        "Stop one of the two installations, then cancel its instances with `eurekube-sync "
        "purge`. See [two owners](owner.md#two-owners-in-one-cluster).",
    )
    FORMER_OWNER_UNREAD = (
        "FormerOwnerUnread",
        Topic.INSTALLATION,
        "It could not be seen whether the former installation of `--former-owner` or "
        "`--former-cluster` still renews its instances, so nothing is moved. Leases that would end "
        "are renewed.",
        "Wait for the next pass. If the message stays, correct what it names.",
    )
    CRD_MISSING = (
        "CRDMissing",
        Topic.INSTALLATION,
        "The CRD is not installed, so no syncer can be read. Nothing is removed.",
        "`eurekube-sync crd | kubectl apply --server-side -f -`.",
    )
    API_MISSING = (
        "APIMissing",
        Topic.INSTALLATION,
        "The cluster does not have an API that the syncer needs: `service.address: Gateway` needs "
        "the Gateway API. Its instances are kept. All other syncers are served.",
        "`kubectl get crd` with the name in the message shows whether the CRD is there. Install "
        "it, or choose another kind of address.",
    )
    CRD_TERMINATING = (
        "CRDTerminating",
        Topic.INSTALLATION,
        "The CRD is being deleted, and all syncers with it. Their instances are kept.",
        "To cancel the instances, run `eurekube-sync purge`. To leave them in Eureka, set "
        '`eurekube.io/abandon: "true"` on each syncer instead. Either way the CRD then goes. '
        "To have the syncers again, install the CRD after that, and create them.",
    )

    # Services and ports
    NO_MATCHING_SERVICE = (
        "NoMatchingService",
        Topic.SERVICES,
        "No Service has the labels or the name of `selector`.",
        "Correct the selector, or label the Service. `explain` shows similar labels.",
    )
    NAMESPACE_NOT_ALLOWED = (
        "NamespaceNotAllowed",
        Topic.SERVICES,
        "The operator did not allow the syncer to select Services of another namespace.",
        "Select in its own namespace, or ask for `--allow-namespace FROM:TO`.",
    )
    NOT_GRANTED = (
        "NotGranted",
        Topic.SERVICES,
        "The syncer's Namespace does not [grant](scope.md#grants) the name or host in the message.",
        "Correct it, or ask the operator to add it to the annotation that the message names.",
    )
    NO_SUCH_PORT = (
        "NoSuchPort",
        Topic.SERVICES,
        "The port that `port` or `securePort` names cannot be found, or there is no default. "
        "The message says where it is missing.",
        "If no Service has it, name one of the ports that the message lists; a number goes "
        "without quotes. If a pod has no container port with the name that the Service gives "
        "as `targetPort`, correct `targetPort` in the Service, such as with the port's number, or "
        "name the port in the pod's containers. If somebody wrote a slice with another port, name "
        "its port as the Service does. If the slices do not have it yet, wait for the cluster's "
        "controllers.",
    )
    AMBIGUOUS_PORT = (
        "AmbiguousPort",
        Topic.SERVICES,
        "`port` fits several ports of a Service. Or it is not set, and none of several ports is "
        "called `http`.",
        "Name one of those that the message lists.",
    )
    AMBIGUOUS_SERVICE = (
        "AmbiguousService",
        Topic.SERVICES,
        "A pod is behind Services that disagree about its port or its app. Without `port`, a "
        "port called `http` comes before the only port of another Service. If this begins "
        "after instances were registered, their port number usually "
        "[stays](rollout.md#a-port-that-changes), and so does their app. The condition "
        "`Ready` is then True, and its message says what to correct.",
        "Set `port` and `appName`, or select one Service with `selector.service`.",
    )
    NO_ADDRESS = (
        "NoAddress",
        Topic.SERVICES,
        "The Service has no address of the kind that `service.address` or `addressFamily` asks "
        "for.",
        "Choose another kind, or correct the Service.",
    )
    ADDRESS_PENDING = (
        "AddressPending",
        Topic.SERVICES,
        "The Service waits for an address of its load balancer.",
        "Wait. If the reason stays, look at the Service's events.",
    )
    NO_ENDPOINT_SLICES = (
        "NoEndpointSlices",
        Topic.SERVICES,
        "A Service has no EndpointSlice, not even an empty one, or only slices of host names "
        "(`addressType: FQDN`). Registered instances are kept.",
        "Wait for the cluster's controllers. For a Service without a selector, write a slice of IP "
        "addresses. The cluster copies the Endpoints of such a Service into slices, except if an "
        "address is "
        "in two subsets.",
    )

    # Pods
    NO_ENDPOINTS = (
        "NoEndpoints",
        Topic.PODS,
        "No pod matches the Services' selectors. Or pods match, and none has an address yet, or "
        "all terminate.",
        "Compare the selectors with the labels of the pods. `explain` shows similar labels.",
    )
    NOT_READY = (
        "NotReady",
        Topic.PODS,
        "A pod is not ready. An instance is first registered when its pod is ready.",
        "`kubectl describe pod NAME` shows its probes and events.",
    )
    NOT_SELECTED = (
        "NotSelected",
        Topic.PODS,
        "The pod is behind no Service.",
        "Correct the labels of the pod, or the selector of the Service.",
    )
    TERMINATING = (
        "Terminating",
        Topic.PODS,
        "The pod is being deleted, and the Service has no other pod.",
        "See why its Deployment has no new pod.",
    )
    NONE_UP = (
        "NoneUp",
        Topic.PODS,
        "The syncer should have instances, and none is UP.",
        "See the message: not ready, drained, or put out of service.",
    )
    ENDPOINT_UNCLEAR = (
        "EndpointUnclear",
        Topic.PODS,
        "Something about a pod, such as its labels, could not be read. Its instance is kept as it "
        "is.",
        "Wait for the next pass. If the reason stays, see what the message names.",
    )
    LIST_OUTDATED = (
        "ListOutdated",
        Topic.PODS,
        "Eureka's list does not show what was registered minutes ago, so it may agree with "
        "the cluster by chance. The instances of this syncer were read one by one where that "
        "may matter.",
        "Let the cache before Eureka pass the program's "
        "[reads](connection.md#a-proxy-before-eureka), or give the address of Eureka itself. "
        "If there is no such cache, restart the Eureka server. If the server makes its lists "
        "more rarely than by default, give `--registry-cache`.",
    )
    LAST_INSTANCE_LOST = (
        "LastInstanceLost",
        Topic.PODS,
        "Callers do not find the app: it has no UP instance in Eureka any more, although "
        "endpoints of it are ready. Nobody asked for that. The message has their number, and "
        "then the reason and message that the syncer has besides this one. `run` exits with "
        "34.",
        "See to that reason.",
    )

    # What somebody asked for
    LIMIT_ZERO = (
        "LimitZero",
        Topic.ASKED_FOR,
        "`limit: 0` registers nothing, and leaves the pods to other syncers.",
        "Raise or remove `limit`.",
    )
    OVER_LIMIT = (
        "OverLimit",
        Topic.ASKED_FOR,
        "The pod is ready, but its syncer's limit leaves it out.",
        "Raise `limit` if the pod should be registered.",
    )
    DRAINED = (
        "Drained",
        Topic.ASKED_FOR,
        "The annotation `eurekube.io/drain` turns the instance [DOWN](drain.md).",
        "Remove the annotation from the object that the message names.",
    )
    SUSPENDED = (
        "Suspended",
        Topic.ASKED_FOR,
        "With [`suspend: true`](suspend.md), instances are renewed and usually not changed.",
        "Set it to false.",
    )
    OUT_OF_SERVICE = (
        "OutOfService",
        Topic.ASKED_FOR,
        "A person or tool set a status in Eureka itself. No pass changes it.",
        "`DELETE /eureka/apps/APP/ID/status` at Eureka removes it; `explain` prints the call.",
    )
    DIFFERS = (
        "Differs",
        Topic.ASKED_FOR,
        "Eureka and the cluster differ, because of a policy or of a status that a person set, "
        "or because the next pass is still to come.",
        "If the message names a policy or such a status, decide whether you want it. Otherwise "
        "wait for the next pass.",
    )

    # Other instances
    CONFLICT = (
        "Conflict",
        Topic.OTHERS,
        "Another syncer has the address, or an instance that is not ours has the id.",
        "Of two syncers of one namespace and one scope, the older one has the address. Give this "
        "one an app of its own with `appName`, or name both VIP addresses in `vipAddress` of the "
        "older one and delete this one. If it is an instance, cancel it.",
    )
    DUPLICATE_REGISTRATION = (
        "DuplicateRegistration",
        Topic.OTHERS,
        "The pod registers itself: its image still has a Eureka client.",
        "Turn its registration off with `eureka.client.register-with-eureka=false`, or delete the "
        "syncer.",
    )
    REGISTERS_ITSELF = (
        "RegistersItself",
        Topic.OTHERS,
        "The readiness gate was opened, because the pod registers itself.",
        "The same as for DuplicateRegistration.",
    )

    # Imports
    NO_INSTANCES = (
        "NoInstances",
        Topic.IMPORTS,
        "Eureka lists no instance of the app or VIP. The import's Service exists, and refuses "
        "calls.",
        "Check `app` or `vipAddress`, and whether the app runs. `kubectl get eimp NAME -o yaml` "
        "shows what was looked for.",
    )
    SERVICE_EXISTS = (
        "ServiceExists",
        Topic.IMPORTS,
        "The Service has another owner, or somebody gave it a selector, so nothing is added to it. "
        "Instances that are gone still leave.",
        "Name another Service in `service.name`, or delete the one that exists. To write slices "
        "next to those of the Service, set `service.adopt`; if the import made the Service, remove "
        "its `ownerReferences`, too.",
    )
    SERVICE_MADE = (
        "ServiceMade",
        Topic.IMPORTS,
        "Somebody deleted the Service of an import, and a pass made it again. Its ClusterIP is "
        "another one.",
        "See who deletes it. Callers that keep an address for long have to start again.",
    )
    NO_SERVICE = (
        "NoService",
        Topic.IMPORTS,
        "With `service.adopt`, the Service has to exist, and to have addresses of its own. With "
        "`addressFamily`, they have to be of that family.",
        "Create it, or remove `service.adopt` or `addressFamily`. The family of a Service that an "
        "import made changes only with a new import.",
    )
    OWN_CLUSTER = (
        "OwnCluster",
        Topic.IMPORTS,
        "The instance was registered by a syncer of this cluster, which has a Service for it.",
        "Call that Service. To import such instances all the same, set `select.thisCluster`.",
    )
    NOT_MATCHING = (
        "NotMatching",
        Topic.IMPORTS,
        "The instance's zone is not in `select.zones`, or its metadata lacks what "
        "`select.metadata` names.",
        "Correct `select`, or the metadata of the instance.",
    )
    NOT_UP = (
        "NotUp",
        Topic.IMPORTS,
        "The instance has another status than UP.",
        "See why the instance is not UP.",
    )
    NO_USABLE_ADDRESS = (
        "NoUsableAddress",
        Topic.IMPORTS,
        "The instance's `ipAddr` is no IP address of the family of the Service, or it is another "
        "machine for each caller, such as 127.0.0.1. A host name does not count.",
        "Correct `eureka.instance.ip-address` of the instance, or set `addressFamily`.",
    )
    OUTSIDE_NETWORKS = (
        "OutsideNetworks",
        Topic.IMPORTS,
        "The instance's address is in none of the networks of `--import-networks`.",
        "Ask the operator to add the network, if it is one of the data centre.",
    )
    IN_CLUSTER = (
        "InCluster",
        Topic.IMPORTS,
        "An EndpointSlice that no import wrote has the instance's address, so it is in this "
        "cluster already.",
        "Call the Service of that slice. If the slice was written by hand for this app, delete it.",
    )
    NO_ENABLED_PORT = (
        "NoEnabledPort",
        Topic.IMPORTS,
        "The instance enables no port from 1 to 65535 that the import offers.",
        "If the instance enables only its secure port, set `service.securePort`.",
    )
    MALFORMED = (
        "Malformed",
        Topic.IMPORTS,
        "Eureka's list has an instance of the app of which a field cannot be read, such as its "
        "port. It is not imported. Endpoints that may be this instance stay, because it is not "
        "gone.",
        "Look at the instance in Eureka: `curl -H 'Accept: application/json' "
        "EUREKA_URL/apps/APP/ID`. Correct the client that registers it, or cancel it.",
    )
    REGISTRY_YOUNG = (
        "RegistryYoung",
        Topic.IMPORTS,
        "A Eureka server lists nothing, or nothing that was registered more than 300 s ago: it "
        "has just started, and instances may be missing that will register again. Endpoints whose "
        "instances are missing stay.",
        "Wait. If Eureka is to stay empty, delete the import.",
    )
    SERVER_UNSEEN = (
        "ServerUnseen",
        Topic.IMPORTS,
        "An instance is missing in the list of one Eureka server, and another server could not "
        "be listed, where it may be UP. Its endpoint stays.",
        "Bring that server back, or take it out of `--eureka-url`.",
    )

    # Removals
    TOO_MANY_REMOVALS = (
        "TooManyRemovals",
        Topic.REMOVALS,
        "One pass would remove too many instances, so the [brake](brake.md) holds these removals.",
        "See whether the pods are really gone, then paste the command of the message. If syncers "
        "were deleted by mistake, [undo the deletion](brake.md#undoing-a-deletion).",
    )
    AWAITING_CONFIRMATION = (
        "AwaitingConfirmation",
        Topic.REMOVALS,
        "An app would lose its last UP instance, or too many pods are dead.",
        "Wait for a second pass, at least 20 s and at most 620 s later. If you run the passes "
        "yourself, use `run --passes 2`.",
    )
    CRD_INSTALLED = (
        "CRDInstalled",
        Topic.REMOVALS,
        "The CRD was installed after the instance was registered, and the instance's syncer is "
        "missing.",
        "Create the syncer, or approve the removal.",
    )
    REMOVAL_HELD = (
        "RemovalHeld",
        Topic.REMOVALS,
        "The brake holds the removal of an instance of the syncer.",
        "See the condition `RemovalHeld`, which has the reason.",
    )
    APPROVAL_REFUSED = (
        "ApprovalRefused",
        Topic.REMOVALS,
        "What `--approve` names cannot be meant for this pass.",
        "Look at the plan of now, and approve that.",
    )
    NOTHING_RELEASED = (
        "NothingReleased",
        Topic.REMOVALS,
        "This pass plans no removals of the plan id of `--approve`. The plan has changed since.",
        "Look at the plan of now. If its removals are right, approve its plan id.",
    )

    # Eureka
    NOT_YET_REGISTERED = (
        "NotYetRegistered",
        Topic.EUREKA,
        "The pod is ready, and no pass has registered it yet.",
        "Wait for the next pass. If the reason stays, see that `eurekube-sync run` runs.",
    )
    EXPIRED = (
        "Expired",
        Topic.EUREKA,
        "Eureka does not hold a ready pod's instance, and holds fewer instances of the syncer "
        "than the last pass left there. No pass renewed it in time, or Eureka started again "
        "without its list.",
        "See whether passes run: the CronJob may be suspended, or the daemon may have ended. "
        "If passes run, see whether `--eureka-url` names the right Eureka.",
    )
    NOT_RENEWED = (
        "NotRenewed",
        Topic.EUREKA,
        "Nobody has renewed the instance for minutes. It will expire. Eureka's list may lack "
        "the renewals of the last 210 s, so `status` reads the oldest instance of such a "
        "syncer uncached, for 30 syncers at most; the head says how many were not read.",
        "The same as for Expired.",
    )
    ANOTHER_STATUS = (
        "AnotherStatus",
        Topic.EUREKA,
        "Eureka shows another status than the pass wants.",
        "The same as for NotYetRegistered.",
    )
    REGISTRY_UNKNOWN = (
        "RegistryUnknown",
        Topic.EUREKA,
        "The pass could not read Eureka. Nothing is removed, and instances are renewed if "
        "Eureka accepts it. A daemon reports this until three passes in a row could read "
        "Eureka, so that a failure that comes and goes is one event and one line of the log. "
        "The counts in the status are always those of the last pass.",
        "See [exit codes](#exit-codes) 20 and 21.",
    )
    PARTLY_FAILED = (
        "PartlyFailed",
        Topic.EUREKA,
        "Some calls to Eureka for this syncer failed, or an instance could not be read again. "
        "The message shows one failure, or counts the calls. It stays until three passes of a "
        "daemon in a row had no failure.",
        "Wait for these passes. If the reason stays, see the report of `run`.",
    )
    WRITE_FAILED = (
        "WriteFailed",
        Topic.EUREKA,
        "Eureka or Kubernetes refused a single write, while others work. The next pass tries "
        "again.",
        "If the message stays, correct what it names.",
    )
    NOT_READ_AGAIN = (
        "NotReadAgain",
        Topic.EUREKA,
        "An instance that a pass would change could not be read once more, so it was not changed.",
        "Wait for the next pass. If the message stays, check that the Eureka server answers `GET "
        "/apps/APP/ID`.",
    )
    CUT_SHORT = (
        "CutShort",
        Topic.EUREKA,
        "The deadline or a signal ended the pass before all was tried. The next pass continues.",
        "If it stays, look for what is slow: the log at `-v` has the time of each step. Or give a "
        "longer `--pass-timeout`.",
    )

    # What could not be read An unknown is never treated as missing
    NOT_LOOKED_AT = (
        "NotLookedAt",
        Topic.UNREAD,
        "`explain` or `status` lacks a right or an option, or a server gave no answer.",
        "Give `--eureka-url`, or ask somebody with the right.",
    )
    SOURCE_UNKNOWN = (
        "SourceUnknown",
        Topic.UNREAD,
        "A list that the syncer needs could not be read. Its instances are kept.",
        "See the message, which names the list and the cause.",
    )
    UNAVAILABLE = (
        "Unavailable",
        Topic.UNREAD,
        "A server gave no answer, or an error that may end by itself.",
        "Wait for the next pass. If the reason stays, check that the server can be reached.",
    )
    DENIED = (
        "Denied",
        Topic.UNREAD,
        "The server refused the login, or a right is missing.",
        "Grant what the message names. [Installing it](install.md) shows how.",
    )
    UNUSABLE = (
        "Unusable",
        Topic.UNREAD,
        "The answer is incomplete, or another program answered.",
        "Check the address, and any proxy in between.",
    )
    NOT_READ = (
        "NotRead",
        Topic.UNREAD,
        "A source was not read, because no option or syncer needed it.",
        "To read it, give the option that the message names.",
    )

    # Nothing is wrong
    IN_SYNC = (
        "InSync",
        Topic.WELL,
        "Eureka holds what the cluster says.",
        "",
    )
    NO_CONFLICT = (
        "NoConflict",
        Topic.WELL,
        "`Conflict=False`: no other instance or syncer is in the way.",
        "",
    )
    NOTHING_HELD = (
        "NothingHeld",
        Topic.WELL,
        "`RemovalHeld=False`: the brake holds no removal.",
        "",
    )
    REGISTERED = (
        "Registered",
        Topic.WELL,
        "The readiness gate is open, because the instance was seen UP in Eureka.",
        "",
    )
    SYNCER_DELETED = (
        "SyncerDeleted",
        Topic.WELL,
        "The readiness gate was opened, because the syncer is being deleted.",
        "",
    )
