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
_NUMBERS = {"pair": 2, "couple": 2, "trio": 3, "quartet": 4, "dozen": 12}
_NUMBERS |= {word: n for n, word in enumerate(_BELOW_TWENTY.split())}
_NUMBERS |= {word: 10 * n for n, word in enumerate(_TENS.split(), start=2)}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6}
_ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth"
ORDINALS = {word: n for n, word in enumerate(_ORDINAL_WORDS.split(), start=1)}

# Words of one meaning; the first of them stands for all.
_SAME = """
    gray grey greyish grayish | man male guy gentleman | woman female lady | child kid toddler
    youngster | people persons humans folks | automobile car sedan | motorcycle motorbike | bicycle
    bike | sofa couch | television tv | airplane aeroplane plane aircraft airliner | boat vessel |
    ship steamship steamer | rock stone boulder | path trail footpath | street road roadway |
    forest woods woodland | cup mug | rug carpet mat | picture painting | store shop | sidewalk
    pavement | blond blonde | big large huge enormous sizable | small little tiny | center middle
    centre central midpoint | bottom lower underside | top upper uppermost | left lefthand leftmost
    leftward leftwards | right righthand rightmost rightward rightwards | up upward upwards | down
    downward downwards | happy cheerful joyful | smile smiling grin grinning beam beaming | rear
    back behind backside | front ahead before | beside next adjacent alongside | above over atop |
    below under beneath underneath | inside within interior inner | outside exterior outer | edge
    rim border margin brim | sit seated sitting seat | stand standing | upright vertical vertically
    | horizontal horizontally | wood wooden timber | metal metallic | gold golden | circle circular
    round rounded disc disk | square squared | triangle triangular | rectangle rectangular | sunny
    sunlit | cloud cloudy overcast | fog foggy mist misty haze hazy | snow snowy snowflake snowfall
    | rain rainy raindrop | night nighttime nocturnal | day daytime daylight | stripe striped
    stripy | dot dotted spotted polka | floral flowery flowered | beard bearded | bald hairless |
    eyeglass glasses spectacles eyeglasses | close closed shut | blurry blurred blur unfocused
    defocused | sharp crisp focused | wet damp | brick bricks | letter letters lettering | caption
    inscription | watch wristwatch | steam vapor vapour | begin start commence | end finish | buy
    purchase | price cost | free gratis | high tall | wide broad | thick dense | thin slender slim
    narrow | pale light | dark deep | bright brilliant | empty vacant bare | full filled | solid
    unbroken continuous | dashed dash | pillar column | peak summit | lake pond | sea ocean | shore
    bank coast | baby infant | doctor physician | police policeman policewoman cop | firefighter
    fireman | hair hairstyle | hat cap | coat jacket | trousers pants slacks | sneaker trainer |
    purse handbag | backpack rucksack | phone smartphone cellphone telephone | computer laptop |
    photo photograph | sign signboard signpost | poster placard | badge sticker emblem | flag
    banner | trash garbage rubbish | autumn fall | supper dinner | soda pop | fry fried | ill sick
    | quick fast rapid | quiet silent | hold grasp grip clutch | throw toss | cut slice sliced |
    leap jump | run running jog sprint | walk stroll | gaze look stare | talk speak chat | write
    written | rest repose | cord string | lamp lantern | curtain drape | picture illustration |
    diagram chart graph | quarter q | roughly about around approximately circa | several numerous
    many | entire whole complete | broken damaged | old elderly aged | young youthful | identical
    same
"""
_CANONICAL = {
    word: group.split()[0] for group in reversed(_SAME.split("|")) for word in group.split()
}

# Words of which each excludes the others of its kind.
_KINDS = """
    red orange yellow green blue purple pink brown black white gray gold silver beige tan cream
    teal turquoise violet maroon navy magenta cyan olive burgundy
    | left right center | top bottom center | above below beside | front behind beside | up down
    | inside outside | north south east west | clockwise counterclockwise
    | wood metal plastic glass stone brick paper | circle square triangle rectangle oval star
"""

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:'[a-z]+)?")
_CLOCK = re.compile(r"\b(1[0-2]|0?[1-9])(?:[:.]([0-5]\d))?\s*([ap])\.?m\b\.?")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|\n+|(?<=[;])\s+")
_LINK = r"(?:while|whereas|but|which|and|with|as) "
_CLAUSE_END = re.compile(rf"(?:,|;|:|\u2014|\u2013| - |\(|\)) ?(?:{_LINK})?| {_LINK}")
_MARKUP = re.compile(r"^[ \t]*(?:#+|[-*\u2022]|\d+[.)])[ \t]+|\*\*|__|`", re.MULTILINE)
_STRAIGHT = str.maketrans("\u2018\u2019\u201c\u201d\u2212\u2013\u2014", "''\"\"---")
_ENDINGS = (
    *(("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("ss", "ss")),
    *(("us", "us"), ("is", "is"), ("s", ""), ("ying", "y"), ("ing", ""), ("ied", "y")),
    *(("ed", ""), ("ly", ""), ("ish", "")),
)


def normalise(text: str) -> str:
    """Fold compatibility forms and case, straighten quotes, leave single spaces.

    >>> normalise("The\\u00a0ＣＡＴ’s")
    "the cat's"
    """
    text = unicodedata.normalize("NFKC", text).translate(_STRAIGHT)
    return " ".join(text.casefold().split())


@lru_cache(maxsize=65536)
def tokens(text: str) -> tuple[str, ...]:
    """Give the words and numbers in order; numbers in words and times become digits.

    >>> tokens("Twenty-five cats, a pair of dogs and 1,200 birds at 8 pm")
    ('25', 'cats', 'a', '2', 'of', 'dogs', 'and', '1200', 'birds', 'at', '20:00')
    """
    found: list[str] = []
    before = 0
    for token in _TOKEN.findall(_CLOCK.sub(_in_24_hours, normalise(text))):
        word = re.sub(r",(?=\d{3}(?!\d))|'s$", "", token)
        number = _NUMBERS.get(word)
        if 0 < before < 1000 and word in _SCALES:
            number = int(found.pop()) * _SCALES[word]
        elif before in range(20, 100, 10) and number is not None and 0 < number < 10:
            number += int(found.pop())
        found.append(word if number is None else str(number))
        before = number or 0
    return tuple(found)


def _in_24_hours(match: re.Match[str]) -> str:
    hour = int(match[1]) % 12 + (12 if match[3] == "p" else 0)
    return f"{hour}:{match[2] or '00'}"


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Cut the common endings off a word, and fold words of one meaning together.

    >>> stem("standing") == stem("stands"), stem("wooden") == stem("wood")
    (True, True)
    """
    short = word
    if word not in _CANONICAL and len(word) > 3 and word.isalpha():
        for ending, rest in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 3 - len(rest):
                short = word[: -len(ending)] + rest
                if not rest and short[-1] == short[-2] and short[-1] not in "lsz":
                    short = short[:-1]
                break
        if len(short) > 4 and short[-1] == "e":
            short = short[:-1]
    return _CANONICAL.get(short, _CANONICAL.get(short + "e", short))


RIVALS = tuple(frozenset(stem(word) for word in kind.split()) for kind in _KINDS.split("|"))


def is_negated(text: str) -> bool:
    """Whether a text holds a word of negation.

    >>> is_negated("There is no dog"), is_negated("There is a dog")
    (True, False)
    """
    return any(denies(token) for token in tokens(text))


def denies(word: str) -> bool:
    """Whether a word is a negation, such as "no" or "isn't"."""
    return word in NEGATIONS or word.endswith("n't")


def sentences(text: str) -> tuple[str, ...]:
    """Split a text into sentences and list entries, without markup.

    >>> sentences("A cat sits. **Two dogs** run!\\n- One bird")
    ('A cat sits.', 'Two dogs run!', 'One bird')
    """
    parts = (" ".join(part.split()) for part in _SENTENCE_END.split(_MARKUP.sub("", text)))
    return tuple(part for part in parts if any(c.isalnum() for c in part))


def clauses(sentence: str) -> tuple[str, ...]:
    """Split a sentence at commas and linking words, into parts of three words or more.

    >>> clauses("A red car is parked on the left, while two men walk by")
    ('A red car is parked on the left', 'two men walk by')
    """
    parts = (part.strip(" .") for part in _CLAUSE_END.split(sentence))
    found = tuple(part for part in parts if len(part.split()) >= 3)
    return found if len(found) > 1 else ()
