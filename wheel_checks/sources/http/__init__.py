"""Bytes over HTTP: sessions, ranges, retries, downloads, pages, and the cache of bytes."""
