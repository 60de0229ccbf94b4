"""What the instruction tasks are about: topics with sentences on them, and categories with their members."""

from __future__ import annotations

TOPICS: dict[str, tuple[str, ...]] = {
    "cats": ("Cats like to sleep", "Many cats chase small mice"),
    "dogs": ("Dogs love to play", "Good dogs guard our house"),
    "rain": ("Rain makes plants grow", "Rain fills rivers with water"),
    "bread": ("Fresh bread smells good", "Bakers make bread from flour"),
    "trains": ("Trains carry many people", "Fast trains connect big cities"),
    "music": ("Music makes people happy", "Some people play music together"),
    "books": ("Books tell good stories", "We learn new words from books"),
    "trees": ("Trees give us shade", "Tall trees grow from small seeds"),
    "birds": ("Birds sing sweet songs", "Some birds fly very far"),
    "coffee": ("Coffee keeps people awake", "Hot coffee tastes bitter"),
    "snow": ("Snow covers our garden", "Children build figures from snow"),
    "summer": ("Summer brings warm weather", "We swim a lot during summer"),
    "football": ("Children play football outside", "Football needs a good team"),
    "school": ("Children learn at school", "At school we meet new friends"),
    "fish": ("Fish swim in water", "Big fish eat smaller ones"),
    "horses": ("Horses run very fast", "Farmers feed their horses hay"),
    "bees": ("Bees make sweet honey", "Bees visit colorful flowers"),
    "water": ("People drink clean water", "Cold water helps when you feel hot"),
    "winter": ("Winter brings cold nights", "We wear warm coats during winter"),
    "gardens": ("Gardens need some care", "People grow food in gardens"),
    "bicycles": ("Many people ride bicycles", "Bicycles have two wheels"),
    "apples": ("Apples taste very sweet", "Red apples grow on trees"),
    "teachers": ("Teachers help their students", "Good teachers explain things well"),
    "doctors": ("Doctors help sick people", "Doctors work in hospitals"),
    "cities": ("Big cities never sleep", "Cities have tall buildings"),
    "farms": ("Farms grow our food", "Cows live on farms"),
    "ships": ("Ships cross wide oceans", "Large ships carry heavy goods"),
    "rivers": ("Rivers carry fresh water", "Long rivers flow through valleys"),
    "mountains": ("Mountains look beautiful", "People climb high mountains"),
    "stars": ("Stars shine very brightly", "Sailors once followed stars"),
    "computers": ("Computers solve hard problems", "People write texts on computers"),
    "cheese": ("Cheese tastes good on bread", "People make cheese from milk"),
    "flowers": ("Flowers smell very nice", "Yellow flowers grow near our house"),
    "chocolate": ("Chocolate tastes very sweet", "Children love dark chocolate"),
    "friends": ("Friends help each other", "Good friends listen well"),
    "bridges": ("Bridges cross deep rivers", "Strong bridges carry heavy trucks"),
}
"""Topic -> sentences without their full stop; none uses "the", "is", "are", "and", or a comma."""

FILLERS = (
    "",
    "today",
    "every day",
    "in many places",
    "in many places today",
    "in many places every day",
    "in many places every single day",
    "in many different places every single day",
    "in many different places on every single day",
    "in many different places on almost every single day",
)
"""Ends of sentences; the n-th has n words."""

KEYWORDS: dict[str, str] = {
    "always": "as always",
    "home": "at home",
    "happy": "for happy people",
    "small": "in small towns",
    "together": "all together",
    "new": "in new ways",
    "often": "quite often",
    "world": "around our world",
}
"""Words to be used -> an end of a sentence that does."""

CATEGORIES: dict[str, tuple[str, str]] = {
    "colors": (
        "color",
        """
        red blue green yellow orange purple pink brown black white gray grey gold silver violet
        turquoise beige indigo maroon navy teal cyan magenta
        """,
    ),
    "animals": (
        "animal",
        """
        dog cat horse cow pig sheep goat lion tiger bear wolf fox rabbit mouse elephant giraffe
        monkey zebra bird fish snake frog deer duck chicken hen eagle owl whale dolphin shark turtle
        kangaroo panda camel donkey rat bee ant dogs cats horses cows pigs lions tigers bears wolves
        birds elephants monkeys
        """,
    ),
    "fruits": (
        "fruit",
        """
        apple banana orange pear grape strawberry cherry mango peach plum lemon lime kiwi pineapple
        watermelon melon blueberry raspberry apricot fig papaya coconut blackberry apples bananas
        oranges pears grapes strawberries cherries mangoes peaches plums lemons
        """,
    ),
    "vegetables": (
        "vegetable",
        """
        carrot potato tomato onion garlic cabbage broccoli spinach lettuce cucumber pepper corn pea
        bean celery pumpkin radish zucchini eggplant cauliflower kale carrots potatoes tomatoes
        onions peas beans peppers cucumbers
        """,
    ),
    "countries": (
        "country",
        """
        france germany italy spain portugal england poland sweden norway denmark finland russia
        china japan india canada mexico brazil argentina chile peru egypt kenya nigeria australia
        greece turkey austria switzerland ireland usa belgium netherlands thailand vietnam indonesia
        """,
    ),
    "sports": (
        "sport",
        """
        football soccer tennis basketball baseball volleyball hockey golf rugby cricket swimming
        running cycling boxing skiing badminton handball wrestling rowing surfing gymnastics
        """,
    ),
    "days of the week": (
        "day",
        """
        monday tuesday wednesday thursday friday saturday sunday
        """,
    ),
    "months": (
        "month",
        """
        january february march april may june july august september october november december
        """,
    ),
    "planets": (
        "planet",
        """
        mercury venus earth mars jupiter saturn uranus neptune
        """,
    ),
    "drinks": (
        "drink",
        """
        water milk tea coffee juice lemonade soda beer wine cola cocoa smoothie
        """,
    ),
    "musical instruments": (
        "instrument",
        """
        piano guitar violin drum drums flute trumpet cello harp saxophone clarinet organ trombone
        banjo ukulele
        """,
    ),
    "body parts": (
        "part",
        """
        head hand foot arm leg eye ear nose mouth finger toe knee neck back shoulder elbow heart
        hands feet arms legs eyes ears fingers toes
        """,
    ),
    "languages": (
        "language",
        """
        english french german spanish italian portuguese chinese mandarin japanese russian arabic
        hindi korean dutch swedish polish greek turkish latin
        """,
    ),
}
"""Category -> its singular as a JSON key, and members that are accepted, in lowercase."""


def members(category: str) -> tuple[str, ...]:
    """The accepted members of a category."""
    return tuple(CATEGORIES[category][1].split())


def forms(topic: str) -> tuple[str, ...]:
    """The words that count as a mention of a topic: it, and its singular or plural."""
    if topic.endswith("ies"):
        return topic, f"{topic[:-3]}y"
    return (topic, topic[:-1]) if topic.endswith("s") else (topic, f"{topic}s")
