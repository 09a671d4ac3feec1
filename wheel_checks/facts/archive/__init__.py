"""The archive of a wheel: its members, and the faults found by reading every byte."""
