"""A domain of your own. In a recipe: source = "examples/my_domain.py:reverse"."""

from surefoot import domain, task


@domain(max_new_tokens=12)
def reverse(rng, letters=4):
    """Spell a made-up word backwards."""
    word = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=letters))
    return task(f"Spell the word '{word}' backwards. Reply with the result only.", answer=word[::-1])


@reverse.grader
def grade(task, rollout):
    return rollout.text.strip().strip(".").lower() == task.checks["answer"]
