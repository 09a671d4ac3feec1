"""The rules of the doctor, one module per section of the catalogue of failures. They judge ``HostFacts``."""
