from tests.local_drafter import engine, frames

__all__ = ["engine", "frames"]
