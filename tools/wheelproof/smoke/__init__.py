"""The application of ``wheelproof smoke``: run the kernels under an interpreter that has torch, and judge them."""
