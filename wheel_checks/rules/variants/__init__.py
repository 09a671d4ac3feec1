"""The rules of wheel variants: claims, coverage and remedies."""
