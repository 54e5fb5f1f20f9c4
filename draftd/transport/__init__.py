"""Servers: bytes in, bytes out, deadlines and shutdown. What the bytes mean is the engine's business."""
