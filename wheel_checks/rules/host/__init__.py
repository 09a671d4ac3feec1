"""The rules of the doctor, which judge ``HostFacts``: a folder or a module for each part of a machine that fails."""
