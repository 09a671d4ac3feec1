"""``wheelproof new``: packages that build, test and run at once, to be changed into one's own."""
