"""Sources of bytes: local files, HTTP ranges, simple indexes; and the byte cache."""
