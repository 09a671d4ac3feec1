"""The link closure: the providers of all needed libraries."""
