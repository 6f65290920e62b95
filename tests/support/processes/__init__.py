"""Programs that tests run as processes of their own, to be killed, to compete, or for a session."""
