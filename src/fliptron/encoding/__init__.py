"""Records as people have them, made into examples as learners need them."""
