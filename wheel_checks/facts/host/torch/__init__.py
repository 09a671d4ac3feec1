"""The torch of a host: the suitable build, the installed one, and its origin."""
