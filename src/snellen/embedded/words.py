"""English words as the embedded judge sees them: numbers as digits, stems, sentences, clauses."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_EMPTY = """
    a an the this that these those it its is are was were be been being am do does did has have
    had having of in on at to for from by with as and or but if then than so such there here
    which what who whom whose when where why how i you he she they we him her them his their our
    your my me us into onto over about also very quite just only can could would may might must
    shall should will some any each both all more most other own same s t up out image picture
    photo photograph caption scene shown visible seen appear appears look looks one ones
    type kind describe described best following according depicted
"""
_DENIALS = """
    no not never none nobody nothing nowhere neither nor without cannot can't isn't aren't
    wasn't weren't don't doesn't didn't hasn't haven't won't lacks lack lacking absent absence
"""
STOP_WORDS = frozenset(_EMPTY.split())
NEGATIONS = frozenset(_DENIALS.split())

_BELOW_TWENTY = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
    fifteen sixteen seventeen eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
SMALL_NUMBERS = {word: n for n, word in enumerate(_BELOW_TWENTY.split())} | {
    word: 10 * n for n, word in enumerate(_TENS.split(), start=2)
}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6}
_GROUPS = {"dozen": "12", "pair": "2", "couple": "2", "trio": "3", "quartet": "4"}
_ORDINAL_WORDS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth"
_ORDINALS = tuple(_ORDINAL_WORDS.split())

# One line a meaning; the first word stands for all of them.
_SAME = """
gray grey greyish grayish
man male guy gentleman
woman female lady
child kid toddler youngster
people persons humans folks
automobile car sedan
motorcycle motorbike
bicycle bike
sofa couch
television tv
airplane aeroplane plane aircraft airliner
boat vessel
ship steamship steamer
rock stone boulder
path trail footpath
street road roadway
forest woods woodland
cup mug
rug carpet mat
picture painting
store shop
sidewalk pavement
blond blonde
big large huge enormous sizable
small little tiny
center middle centre central midpoint
bottom lower underside
top upper uppermost
left lefthand leftmost leftward leftwards
right righthand rightmost rightward rightwards
up upward upwards
down downward downwards
happy cheerful joyful
smile smiling grin grinning beam beaming
rear back behind backside
front ahead before
beside next adjacent alongside
above over atop
below under beneath underneath
inside within interior inner
outside exterior outer
edge rim border margin brim
sit seated sitting seat
stand standing
upright vertical vertically
horizontal horizontally
wood wooden timber
metal metallic
gold golden
circle circular round rounded disc disk
square squared
triangle triangular
rectangle rectangular
sunny sunlit
cloud cloudy overcast
fog foggy mist misty haze hazy
snow snowy snowflake snowfall
rain rainy raindrop
night nighttime nocturnal
day daytime daylight
stripe striped stripy
dot dotted spotted polka
floral flowery flowered
beard bearded
bald hairless
eyeglass glasses spectacles eyeglasses
close closed shut
blurry blurred blur unfocused defocused
sharp crisp focused
wet damp
brick bricks
letter letters lettering
caption inscription
watch wristwatch
steam vapor vapour
begin start commence
end finish
buy purchase
price cost
free gratis
high tall
wide broad
thick dense
thin slender slim narrow
pale light
dark deep
bright brilliant
empty vacant bare
full filled
solid unbroken continuous
dashed dash
pillar column
peak summit
lake pond
sea ocean
shore bank coast
baby infant
doctor physician
police policeman policewoman cop
firefighter fireman
hair hairstyle
hat cap
coat jacket
trousers pants slacks
sneaker trainer
purse handbag
backpack rucksack
phone smartphone cellphone telephone
computer laptop
photo photograph
sign signboard signpost
poster placard
badge sticker emblem
flag banner
trash garbage rubbish
autumn fall
supper dinner
soda pop
fry fried
ill sick
quick fast rapid
quiet silent
hold grasp grip clutch
throw toss
cut slice sliced
leap jump
run running jog sprint
walk stroll
gaze look stare
talk speak chat
write written
rest repose
cord string
lamp lantern
curtain drape
picture illustration
diagram chart graph
quarter q
roughly about around approximately circa
several numerous many
entire whole complete
broken damaged
old elderly aged
young youthful
identical same
"""
_CANONICAL = {
    w: line.split()[0] for line in reversed(_SAME.strip().split("\n")) for w in line.split()
}

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:'[a-z]+)?")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|\n+|(?<=[;])\s+")
_LINK = r"(?:while|whereas|but|which|and|with|as)\s+"
_CLAUSE_END = re.compile(rf"(?:,|;|:|\u2014|\u2013| - |\(|\))\s*(?:{_LINK})?|\s+{_LINK}")
_MARKUP = re.compile(r"^\s*(?:#+|[-*\u2022]|\d+[.)])\s+|\*\*|__|`", re.MULTILINE)
_QUOTED = re.compile(r"[\"\u201c\u201d\u00ab\u00bb]([^\"\u201c\u201d\u00ab\u00bb]{1,80})"
                     r"[\"\u201c\u201d\u00ab\u00bb]|(?<!\w)'([^']{1,60})'(?!\w)")  # fmt: skip


def normalise(text: str) -> str:
    """Compatibility forms folded, lower case, straight quotes, single spaces.

    >>> normalise("The\\u00a0ＣＡＴ’s")
    "the cat's"
    """
    text = unicodedata.normalize("NFKC", text).translate(_STRAIGHT)
    return " ".join(text.casefold().split())


_STRAIGHT = str.maketrans("\u2018\u2019\u201c\u201d\u2212\u2013\u2014", "''\"\"---")


@lru_cache(maxsize=65536)
def tokens(text: str) -> tuple[str, ...]:
    """Words and numbers in order; numbers in words become digits.

    >>> tokens("Twenty-five cats, a pair of dogs and 1,200 birds")
    ('25', 'cats', 'a', '2', 'of', 'dogs', 'and', '1200', 'birds')
    """
    raw = [_bare(t) for t in _TOKEN.findall(_CLOCK.sub(_in_24_hours, normalise(text)))]
    found: list[str] = []
    position = 0
    while position < len(raw):
        number, used = _number_at(raw, position)
        found.append(raw[position] if number is None else number)
        position += used
    return tuple(found)


_CLOCK = re.compile(r"\b(1[0-2]|0?[1-9])(?:[:.]([0-5]\d))?\s*([ap])\.?m\b\.?")


def _in_24_hours(match: re.Match[str]) -> str:
    """A time of day such as "8 pm" as 20:00."""
    hour = int(match[1]) % 12 + (12 if match[3] == "p" else 0)
    return f"{hour}:{match[2] or '00'}"


def _bare(token: str) -> str:
    if token[0].isdigit():
        return re.sub(r",(?=\d{3}(?!\d))", "", token)
    return token[:-2] if token.endswith("'s") else token


def _number_at(raw: list[str], start: int) -> tuple[str | None, int]:
    """The number that begins at a word, in digits, and how many words it takes."""
    if raw[start] in _GROUPS:
        return _GROUPS[raw[start]], 1
    total, current, used = 0, 0, 0
    for word in raw[start:]:
        small = SMALL_NUMBERS.get(word)
        if small is not None and (current == 0 or (current % 10 == 0 < small < 10)):
            current += small
        elif word in _SCALES and used:
            current = max(current, 1) * _SCALES[word]
            if _SCALES[word] > 100:
                total, current = total + current, 0
        else:
            break
        used += 1
    return (str(total + current), used) if used else (None, 1)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A word without its common endings, words of one meaning folded together.

    >>> stem("standing") == stem("stands"), stem("wooden") == stem("wood")
    (True, True)
    """
    if word in _CANONICAL:
        return _CANONICAL[word]
    if word in _ORDINALS:
        return f"{_ORDINALS.index(word)}th"
    short = _strip_ending(word)
    return _CANONICAL.get(short, _CANONICAL.get(short + "e", short))


def _strip_ending(word: str) -> str:
    if len(word) <= 3 or not word.isalpha():
        return word
    if word.endswith("xes"):
        return word[:-2]
    for ending, rest in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            short = word[: -len(ending)] + rest
            return _mend(short) if ending in ("ing", "ed", "ish") else _no_e(short)
    return _no_e(word)


def _mend(short: str) -> str:
    """The verb that lost its -ing or -ed: run from runn, ride from rid."""
    if len(short) > 3 and short[-1] == short[-2] and short[-1] not in "lsz":
        return short[:-1]
    return _no_e(short + "e" if _LOST_E.fullmatch(short) else short)


_LOST_E = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")


_ENDINGS = (
    ("ies", "y"),
    ("sses", "ss"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("ss", "ss"),
    ("us", "us"),
    ("is", "is"),
    ("s", ""),
    ("ying", "y"),
    ("ing", ""),
    ("ied", "y"),
    ("ed", ""),
    ("ly", ""),
    ("ish", ""),
)


def _no_e(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


@lru_cache(maxsize=65536)
def stems(text: str) -> frozenset[str]:
    """The stems of a text's content words and numbers.

    >>> sorted(stems("There are two wooden chairs in the picture"))
    ['2', 'chair', 'wood']
    """
    return frozenset(stem(t) for t in tokens(text) if t not in STOP_WORDS)


def is_negated(text: str) -> bool:
    """Whether a text holds a word of negation.

    >>> is_negated("There is no dog"), is_negated("There is a dog")
    (True, False)
    """
    return any(t in NEGATIONS or t.endswith("n't") for t in tokens(text))


def quoted(text: str) -> tuple[str, ...]:
    """What stands between quotation marks, normalised.

    >>> quoted('A sign reads "STOP HERE".')
    ('stop here',)
    """
    return tuple(normalise(a or b) for a, b in _QUOTED.findall(text))


def sentences(text: str) -> tuple[str, ...]:
    """The sentences and list entries of a text, without markup.

    >>> sentences("A cat sits. **Two dogs** run!\\n- One bird")
    ('A cat sits.', 'Two dogs run!', 'One bird')
    """
    parts = (part.strip() for part in _SENTENCE_END.split(_MARKUP.sub("", text)))
    return tuple(part for part in parts if any(c.isalnum() for c in part))


def clauses(sentence: str) -> tuple[str, ...]:
    """The parts of a sentence between commas and linking words, of three words or more.

    >>> clauses("A red car is parked on the left, while two men walk by")
    ('A red car is parked on the left', 'two men walk by')
    """
    parts = (part.strip(" .") for part in _CLAUSE_END.split(sentence))
    found = tuple(part for part in parts if len(part.split()) >= 3)
    return found if len(found) > 1 else ()
