"""The files of a wheel's dist-info folder, wheel names, and wheel variants."""
