"""A config file of the processor: its text and the environment in, one `Deployment` out; pure."""
