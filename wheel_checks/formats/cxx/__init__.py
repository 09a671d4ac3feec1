"""C++ symbol names: the Itanium ABI's mangling, read back into what programmers write."""
