"""Our learners where users of other libraries are at home; each module needs its library."""
