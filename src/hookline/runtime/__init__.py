"""The application: pipeline, sessions, channels, and what a turn needs from them."""
