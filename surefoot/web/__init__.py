"""Local web pages: the viewer of runs, and what other pages share with it. On 127.0.0.1 only; all text is escaped."""
