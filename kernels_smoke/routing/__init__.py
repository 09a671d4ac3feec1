"""The k greatest of each row, with their softmax: routing to experts, and sampling. See README.md for sources."""
