"""compute-sanitizer over the launches of a kernel's cases."""
