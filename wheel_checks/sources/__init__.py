"""Where bytes come from: local files, HTTP ranges, simple indexes; and the byte cache."""
