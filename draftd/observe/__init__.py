"""What people see of a running server: log lines, metrics, and what the machine gives it. A leaf."""
