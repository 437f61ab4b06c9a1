"""What should be registered in Eureka: a spec, with the Services and slices that it selects, becomes claims. Pure."""
