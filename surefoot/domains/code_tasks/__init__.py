"""Small Python functions to write: families of problems by topic, and the inputs that test them."""
