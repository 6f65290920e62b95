"""From rules to SQL: readable for people, exact for the engines that compute with it."""
