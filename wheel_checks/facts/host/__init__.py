"""The doctor's facts about a host: one frozen dataclass per section, written to and read from JSON.

A section that could not be read is ``Unavailable``. Nothing here reads anything: ``wheelproof.doctor.probes`` does.
"""
