"""What rules of several subjects find and show alike."""
