"""Imports in the simulation: apps of the data centre, which the program makes callable in the
cluster.

    data_centre the instances of these apps, and their Eureka clients
    wishes      what people ask for: imports, Services and slices, and the events about them
    oracle      what each import should have, by an oracle that shares no code with the product
    promises    the promises about imports, judged at every write and at the end of every pass
    brake       which removals have to wait, and how long
    stories     stories of imports
    wrong       defects that the promises have to catch
"""
