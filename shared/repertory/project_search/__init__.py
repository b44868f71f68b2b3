"""Contract 5: the files of a project, searched exactly or fuzzily."""
