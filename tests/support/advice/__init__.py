"""What advice has to fulfil."""
