"""The checks of `repertory doctor`, a module for each subject."""
