"""What runs inside the jail: standard library only, a program of its own, without the rest of Surefoot.

The package is also imported by the supervisor for the parts that both sides share (`codec`, `wire`).
"""
