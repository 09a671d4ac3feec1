"""What an index says of its files: its pages, and the names and hashes of the files."""
