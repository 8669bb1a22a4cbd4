"""The application: the pipeline, sessions, channels, and the parts that a turn uses."""
