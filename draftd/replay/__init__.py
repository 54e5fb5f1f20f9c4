"""Replays recorded traffic against a drafter and counts what each verify step yields."""
