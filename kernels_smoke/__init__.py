"""Our Triton kernels and the suite that proves them. Imports torch and triton, and nothing else of ours."""
