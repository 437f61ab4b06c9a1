"""The whole program on virtual time, in one process: the real loop, the real adapters, the embedded servers.

    chance    a seed becomes a story
    story     a story as a value: an installation, events of the world, troubles of the calls
    events    what happens in the world: pods, syncers, strangers, people, servers, clocks
    troubles  what happens to a call: errors before and after its effect, wrong answers, a pause, death
    clock     virtual time, which moves with calls and sleeps
    world     both servers, and what a person or a controller does to them
    wire      every outgoing call of a copy of the program, on its way between adapter and server
    copies    copies of the program: a daemon, a CronJob, one pass at a time; a second one beside it
    truth     what should stand, read from the servers by an oracle that shares no code with the product
    judge     the promises, held against the servers' true state at every call
    run       one story from its beginning to its verdict
    drains    stories in which a person drains pods and nodes, and the lists that tell of it fail
    shrink    a story that fails becomes the smallest that still does
    tale      a story told with times
    defects   the product made wrong on purpose, to show that the judge sees it

`python -m tests.simulation --runs 1000 --seed 7` runs stories; `--defects` prints the table of the defects.
"""
