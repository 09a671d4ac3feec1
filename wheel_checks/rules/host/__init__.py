"""The rules of the doctor, by the sections of the catalogue of failures. They judge ``HostFacts``."""
