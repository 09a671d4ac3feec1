"""The guard: files that keep pip and uv from replacing torch, and whether they are in force."""
