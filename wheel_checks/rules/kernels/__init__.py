"""The rules of the kernels' suite: results, machine code and probes."""
