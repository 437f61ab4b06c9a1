"""The claims of a pass: what should be registered in Eureka, from specs, Services and slices. No
I/O."""
