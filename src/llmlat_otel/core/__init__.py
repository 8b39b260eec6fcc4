"""The SDK's core: phases in, spans and metrics out."""
