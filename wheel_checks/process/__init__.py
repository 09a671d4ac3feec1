"""Child processes: how one is supervised, the processes below it, and the signals that interrupt."""
