"""Streams of frames and documents: what arrives, and what Spark would hand over."""
