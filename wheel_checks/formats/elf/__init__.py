"""ELF files: headers, segments, sections, dynamic section, symbols, versions, notes, and the loader's cache."""
