"""Are kernels right? Inputs, comparisons, the judge of a case, and mutants."""
