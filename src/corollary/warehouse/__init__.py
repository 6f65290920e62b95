"""Where data rests: files of facts now, the durable warehouse with it."""
