"""What can be known of a program without running it: types, safety, strata, orders."""
