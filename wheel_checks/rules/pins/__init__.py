"""The rules of requirements, guards and planned installs."""
