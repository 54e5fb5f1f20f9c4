"""Everything draftd does, seen at work on recorded traffic: `make demo`."""
