"""Device code: Triton kernels, each beside a twin in plain torch that runs anywhere. Needs the `gpu` extra."""
