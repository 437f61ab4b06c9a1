"""The difference between what should be registered and what is registered, as one sorted value.

    claims (desired) + complete registry (observed)  ->  make_plan      -> renew, register, update, cancel
    claims (desired), registry Unknown               ->  plan_blind     -> renew what is wanted, register on a 404
    a cluster that does not tell who it is           ->  plan_renewals  -> renew

Only `make_plan` can remove. It takes an `Observed`, which only a complete list can make, and each removal bears the
`Proof` of the source that shows it. Begin with `make`."""
