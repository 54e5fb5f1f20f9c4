"""How much is drafted at this load. Events in, numbers out: no clock, no socket."""
