"""The rules, one module per theme. Importing this package registers all of them."""
