"""A run of many cells, and the merge of runs on several machines."""
