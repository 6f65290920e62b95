"""What runs plans; `budget` serves both engines."""
