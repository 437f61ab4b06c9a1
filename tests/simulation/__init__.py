"""The whole program on virtual time, in one process: the real loop, the real adapters, the embedded
servers.

    chance      a seed becomes a story
    wishes      the specs of syncers in random stories, and the events that follow from them
    story       a story as a value: an installation, events of the world, troubles of the calls
    asked       the fields of a spec, as a story writes them and as the oracle reads them back
    events      events of the world: pods, syncers, strangers, people, servers, clocks
    decisions   decisions of people beside specs: they release held removals, abandon, delete a namespace
    rollout     a rolling update, as a Deployment makes it
    troubles    troubles of a call: errors before and after its effect, wrong answers, a pause, death
    clock       virtual time, which moves with calls and sleeps
    world       both servers, and what a person or a controller does to them
    address     where the address of Kubernetes leads
    elsewhere   stories in which that is another cluster for a while
    addresses   outside addresses of a Service, and stories in which they change
    hours       long stories: Eureka cannot be read for minutes
    suspensions stories in which Eureka loses instances of a suspended syncer, which should come back
    overrides   stories in which a person puts instances out of service
    refusals    stories in which Eureka refuses registrations while pods change
    crowds      stories in which many pods of an app end at once
    teams       stories of many apps, of which several are removed at once, and of other changes during a hold
    shares      stories of limits in percent, with unready pods, or with instances of others
    sharing     stories in which two syncers serve the same pods behind a gate
    heirs       stories in which a syncer gives way to an heir that alone needs a list that fails
    apart       the promise about syncers that are served in another way than the pods of most stories
    machines    machines outside of the cluster, of which one listens at two ports
    hostports   pods at the host ports of their nodes, and stories in which they move and no list shows it
    nodeports   Services at the ports of nodes, and stories in which nodes come and leave
    entries     Services at Ingresses and Gateways, and stories in which these come, change and go
    writers     stories in which another writer makes a slice for an app's Service
    ambiguous   stories in which a syncer loses sight of its port while pods are replaced
    credentials stories in which the credentials for Kubernetes change or fail; `tokens` has them
    flaps       stories of an app, or of a list, that comes and goes each pass
    typos       stories in which Services select no pod for a while
    unlisted    stories in which only Eureka's list, or only the writing of events, fails for long
    taken       stories in which another client has the id that a pod is about to get, and no list shows it
    starving    stories in which one kind of call takes all the time of its stage
    steady      the promise that nothing is written to Kubernetes while nothing changes
    wire        every outgoing call of a copy of the program, on its way between adapter and server
    copies      copies of the program: a daemon, a CronJob, one pass at a time; a second one beside it
    truth       what should be registered, by an oracle that shares no code with the product
    view        what one pass has seen and done so far
    judge       the promises, compared with the true state of the servers at every call
    losses, confirmations, limits, conduct, releases, leases, deletions, strays, twins
                more promises: what apps lose, specs, releases, leases, deletions, lists of another cluster, and
                pods that register themselves
    last        the promise that nobody says all is well when an app loses its last instance without need
    evidence    what a pass may have known as evidence for a removal
    dead        the promises about dead pods, and about needless holds
    rest        the promises about the end of a story
    run         one story from its beginning to its verdict
    drains      stories in which a person drains pods, and the list that shows it fails
    shrink      finds the smallest story that still fails
    tale        a story told with times
    defects     makes the product wrong on purpose, to show that the judge sees it. Also in mended, misplaced,
                mistaken, misreadings, misweighings, neglects, trespasses
    page        the table of the defects, and the last long run in docs/simulation.md

`python -m tests.simulation --runs 1000 --seed 7` runs stories; `--defects` prints the table of the
defects.
"""
