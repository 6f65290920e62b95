"""The engine without a JVM: coded tuples in sorted arrays, probed by binary search."""
