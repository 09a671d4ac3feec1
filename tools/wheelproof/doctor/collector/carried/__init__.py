"""What only the collector needs: the program that it starts with, and what Python 3.6 lacks. Not used elsewhere."""
