"""Words that variants of tasks are made with. None of them changes what is asked."""

from __future__ import annotations

FRAMES = (
    "Here is a task for you.\n\n{question}",
    "I would like your help with the following.\n\n{question}",
    "Hello! Please have a look at this:\n\n{question}",
    "Next one.\n\n{question}",
)
"""What a person may put around a question."""

SYNONYMS = {
    "Calculate": ("Compute", "Work out"),
    "Compute": ("Calculate", "Work out"),
    "Find": ("Determine", "Work out"),
    "Determine": ("Find", "Work out"),
    "Solve": ("Work out",),
    "Implement": ("Write",),
    "Define": ("Write",),
    "Reply with": ("Respond with", "Answer with"),
    "Use at least": ("Include no fewer than",),
    "Use at most": ("Use no more than",),
    "Use only": ("Use nothing but",),
    "Do not use": ("Avoid", "Never use"),
    "For example": ("For instance",),
    "How many": ("What number of",),
    "the following": ("this", "the"),
}
"""Phrases that mean the same in a request, with their letter case."""

DISTRACTORS = (
    "By the way, the museum down the road is open until 6 today.",
    "My neighbour bought 14 tickets for the concert last week.",
    "It has been raining for 3 days here.",
    "The train to the coast takes 52 minutes, I was told.",
    "Somebody left 2 umbrellas in the hall.",
    "A friend of mine turned 31 yesterday.",
)
"""Remarks that have nothing to do with any task."""

NAMES = (
    (
        *("Alice", "Amy", "Anna", "Beth", "Betty", "Carla", "Claire", "Diana", "Ella", "Emily", "Emma", "Erica"),
        *("Grace", "Hannah", "Helen", "Jane", "Janet", "Jasmine", "Jenny", "Jessica", "Julia", "Karen", "Kate"),
        *("Kylie", "Laura", "Lily", "Linda", "Lisa", "Lucy", "Maria", "Martha", "Mary", "Mia", "Natalia", "Nina"),
        *("Olivia", "Rachel", "Sarah", "Sophia", "Susan", "Tina", "Violet", "Wendy"),
    ),
    (
        *("Adam", "Alex", "Ben", "Bob", "Brian", "Carl", "Charlie", "Daniel", "David", "Dan", "Eric", "Frank", "Fred"),
        *("George", "Harry", "Henry", "Jack", "Jacob", "James", "Jason", "Jerry", "Jim", "Joe", "John", "Josh", "Ken"),
        *("Kevin", "Luke", "Mark", "Matt", "Max", "Michael", "Mike", "Nick", "Noah", "Oliver", "Paul", "Peter"),
        *("Raymond", "Robert", "Sam", "Steve", "Ted", "Tim", "Toby", "Tom", "William"),
    ),
)
"""First names, of girls and of boys, so that pronouns still fit."""
