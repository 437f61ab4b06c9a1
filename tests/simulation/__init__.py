"""The whole program on virtual time, in one process: the real loop, the real adapters, the embedded servers.

    chance      a seed becomes a story
    wishes      what syncers of random stories ask for, and what people then do about it
    story       a story as a value: an installation, events of the world, troubles of the calls
    asked       what a spec asks for, as a story writes it and as the oracle reads it back
    events      what happens in the world: pods, syncers, strangers, people, servers, clocks
    decisions   what people decide beside specs: they release what is held, abandon, delete a namespace
    rollout     a rolling update, as a Deployment makes it
    troubles    what happens to a call: errors before and after its effect, wrong answers, a pause, death
    clock       virtual time, which moves with calls and sleeps
    world       both servers, and what a person or a controller does to them
    address     where the address of Kubernetes leads
    elsewhere   stories in which another cluster is behind it for a while
    addresses   where a Service is reached from outside, and stories in which that changes
    hours       long stories: what a policy never cancels expires, a Eureka that cannot be read for minutes
    suspensions stories in which Eureka loses what a suspended syncer has, and what is to come back
    overrides   stories in which a person puts instances out of service, and what keeps them
    refusals    stories in which Eureka refuses registrations while pods change
    crowds      stories in which many of an app's pods go at once, and how many may
    teams       stories of many apps, of which several are taken away at once, and what goes on beside a hold
    shares      stories in which a percentage is to be UP, of pods that are not all ready, or beside others
    sharing     stories in which two syncers serve the same pods behind a gate, and when that opens
    taken       stories in which somebody else has the id that a pod is about to get, where no list shows it
    starving    stories in which one kind of call takes all the time of its stage, and what gets done all the same
    steady      what is written to Kubernetes while nothing changes
    wire        every outgoing call of a copy of the program, on its way between adapter and server
    copies      copies of the program: a daemon, a CronJob, one pass at a time; a second one beside it
    truth       what should stand, read from the servers by an oracle that shares no code with the product
    view        what one pass has seen and done so far
    judge       the promises, held against the servers' true state at every call
    losses, confirmations, limits, conduct, releases, leases, deletions, strays, twins
                what it asks: what apps lose, what specs ask for, what people released, when leases and deletions end,
                what is done by lists of another cluster, and what stands beside a pod's own
    evidence    what a pass may have known that somebody wanted a removal
    dead        what dead pods leave, and what is held without need
    rest        the promises about the end of a story
    run         one story from its beginning to its verdict
    drains      stories in which a person drains pods and nodes, and the lists that tell of it fail
    shrink      a story that fails becomes the smallest that still does
    tale        a story told with times
    defects     the product made wrong on purpose, to show that the judge sees it; misreadings: of specs and releases;
                neglects: of what nobody misses at once
    page        what docs/simulation.md shows of runs

`python -m tests.simulation --runs 1000 --seed 7` runs stories; `--defects` prints the table of the defects.
"""
