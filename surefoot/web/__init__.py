"""Local web pages: the viewer of runs, and what other pages share with it. They bind to 127.0.0.1 and escape all text."""
