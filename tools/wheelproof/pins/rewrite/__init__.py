"""Rewriting pins: files found, planned, proven, replaced, and restored from the journal."""
