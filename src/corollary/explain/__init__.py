"""Plans, forecasts and programs as text, JSON and pictures."""
