"""Grades a short answer against a reference by rule: no model, no prompt."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass

from snellen.embedded.quantities import Quantity, is_same_quantity, quantities
from snellen.embedded.words import NEGATIONS, STOP_WORDS, normalise, stem, tokens
from snellen.records import GradeTask

_COLOURS = """
red orange yellow green blue purple pink brown black white gray gold silver beige tan cream teal
turquoise violet maroon navy magenta cyan olive burgundy
"""
_DIRECTIONS = (
    "left right center",
    "top bottom center",
    "above below beside",
    "front behind beside",
    "up down",
    "inside outside",
    "north south east west",
    "clockwise counterclockwise",
)
_KINDS = (
    *_DIRECTIONS,
    "wood metal plastic glass stone brick paper",
    "circle square triangle rectangle oval star",
    "open close",
    "sit stand lie walk run jump",
    "same different equal",
    "more fewer less",
    "horizontal vertical diagonal",
    "man woman boy girl",
    "dog cat bird horse cow sheep fish",
    "spring summer autumn winter",
    "monday tuesday wednesday thursday friday saturday sunday",
    "january february march april may june july august september october november december",
    "rain snow hail sunny fog cloud",
    "big small medium",
    "day night dawn dusk noon sunrise sunset morning evening",
    "old young",
    "wet dry",
    "full empty",
    "long short",
    "hot cold",
)
# Stems of words of which each excludes the others of its kind.
RIVALS: tuple[frozenset[str], ...] = tuple(
    frozenset(stem(word) for word in kind.split()) for kind in (_COLOURS, *_KINDS)
)

_YES = frozenset({"yes", "true", "yeah", "yep", "correct"})
_NO = frozenset({"no", "false", "nope", "incorrect"})
_FINAL = re.compile(
    r"(?:final answer|correct answer|correct option|the answer|my answer|\banswer)"
    r"\s*(?:is|would be|should be|:|=)+\s*:?\s*(?:option\s+)?"
    r"|therefore,?|thus,?|in conclusion,?|hence,?|(?<=[.;,]\s)so,?\s|\b(?:that|which) makes\b",
    re.IGNORECASE,
)
_PICTURE_MARK = re.compile(r"<\|image_\d+\|>")
_ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth"
_BOXED = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")
# "The left one" holds no number.
_PRONOUN = re.compile(r"\b(the (?:\w+ ){1,2}?)ones?\b", re.IGNORECASE)
_TEX = re.compile(r"\\(?:text|mathrm|mathbf)\{([^{}]*)\}|\\[()\[\],;!]|\$(?!\d)")
# "A. text", "(A) text", "A: text", and "A (3, 4)" where the text is in brackets.
_MARKED = r"\(?([A-J])(?:[.):]\)?\s|[.):]\)?(?=\S)|(?=\s*[\[(]-?\d))"
_NEXT = r"[\s,;]+\(?[B-J](?:[.):]\)?\s|\s*[\[(]-?\d)"
_OPTION = re.compile(rf"(?:^|[\s(\[]){_MARKED}\s*(.+?)(?={_NEXT}|\n|$)", re.DOTALL)
_LETTER_ALONE = re.compile(r"[\s(\[*]*([A-Ja-j])[\s)\].:*]*")
_LETTER_LEADS = re.compile(r"[\s*]*(?:\(([A-J])\)|([A-J])[.):])[\s*]*(\S.*)?", re.DOTALL)
_LETTER_NAMED = re.compile(r"\b(?:option|choice|answer is|answer:)\s*\(?\**([A-J])\b(?!')", re.I)
_ORDERED = re.compile(
    r"\b(?:order|sequence|left to right|right to left|top to bottom|bottom to top|coordinates?"
    r"|respectively|ranked?|sort(?:ed)?|first to last|clockwise)\b",
    re.IGNORECASE,
)
_SPLIT = re.compile(r"\s*(?:,|;|\n|->|\u2192|>)\s*(?:and\s+)?|\s+(?:and|&)\s+")
# A comma between digits parts two numbers unless three digits follow, as in 1,200.
_BETWEEN = re.compile(r"(?<=\d),(?!\d{3}(?!\d))\s*(?=-?\d)")
_CODE = re.compile(r"(?=.*\d)(?=.*[a-z])[a-z0-9][a-z0-9 ./:#-]*|\d+(?:[:/.-]\d+)+|[\d -]{7,}")
_ASKS_FOR_TEXT = re.compile(
    r"\b(?:say|says|reads?|written|word|words|text|letters?|title|headline|surname|inscription|"
    r"spell(?:s|ed)?|called|labell?ed)\b",
    re.IGNORECASE,
)
_SUM = re.compile(r"(?:total(?: of| is)?|altogether|in all|equals|makes)\b(.*)$", re.IGNORECASE)
_ORDINALS = {stem(word): n for n, word in enumerate(_ORDINAL_WORDS.split(), start=1)}
_HEDGE = re.compile(r"\b(?:either|or|not sure|unsure|cannot (?:tell|determine)|unclear)\b")


@dataclass(frozen=True, slots=True)
class Grade:
    """Whether an answer is right, and why; `right` is None where the rules do not decide."""

    right: bool | None
    reason: str


@dataclass(frozen=True, slots=True)
class _Case:
    question: str
    reference: str
    answer: str
    whole: str
    options: dict[str, str]


def grade(task: GradeTask) -> Grade:
    """The grade of an answer: the first rule that fits the reference decides.

    >>> grade(GradeTask("How long is it?", "1.5 m", "The answer is 150 cm.")).right
    True
    >>> grade(GradeTask("What colour is it?", "red", "It is not red.")).right
    False
    """
    whole = _plain(task.answer)
    question = _PICTURE_MARK.sub(" ", task.question)
    case = _Case(question, _plain(task.reference), final_answer(whole), whole,
                 options_of(question))  # fmt: skip
    if not any(c.isalnum() for c in case.answer):
        return Grade(False, "the answer holds no words")
    if words_of(case.reference) and words_of(case.reference) == words_of(case.answer):
        return Grade(True, "the answer equals the reference")
    for rule in _RULES:
        found = rule(case)
        if found is not None:
            return found
    return _grade_text(case)


def final_answer(text: str) -> str:
    """What a reply commits to: a box, or what follows its last answer phrase, or all of it.

    >>> final_answer("The car is near. So the answer is: blue.")
    'blue.'
    """
    boxes = _BOXED.findall(text)
    if boxes:
        return str(boxes[-1]).strip()
    phrases = list(_FINAL.finditer(text))
    rest = text[phrases[-1].end() :].strip() if phrases else ""
    return rest.split("\n\n")[0].strip() if any(c.isalnum() for c in rest) else text.strip()


def options_of(question: str) -> dict[str, str]:
    """The lettered options that a question lists; empty unless they begin with A and B.

    >>> options_of("Which? A. red car B. blue car")
    {'A': 'red car', 'B': 'blue car'}
    """
    found = {letter: text.strip(" ,;\n") for letter, text in _OPTION.findall(question)}
    return found if {"A", "B"} <= found.keys() else {}


def words_of(text: str) -> tuple[str, ...]:
    """A text's words without articles, numbers in digits: what makes two answers equal."""
    found = tokens(text)
    # Before another single letter, and alone, A is a letter and no article.
    letters = {
        i for i, t in enumerate(found) if t == "a" and len("".join(found[i + 1 : i + 2])) < 2
    }
    return tuple(t for i, t in enumerate(found) if i in letters or t not in ("a", "an", "the"))


def _plain(text: str) -> str:
    text = _PRONOUN.sub(r"\1", _TEX.sub(lambda m: m[1] or "", text))
    return re.sub(r"[*`_]{1,3}(?=\S)|(?<=\S)[*`_]{1,3}", "", text).strip()


def _grade_letter(case: _Case) -> Grade | None:
    wanted = _letter_of_reference(case)
    if wanted is None:
        return None
    found = _letter_in(case.answer) or _letter_in(case.whole)
    text = case.options.get(wanted) or _text_after_letter(case.reference)
    if found:
        return Grade(found == wanted, f"option {found} was chosen, the reference is {wanted}")
    if not text:
        return Grade(False, f"no option letter in the answer, the reference is {wanted}")
    named = [k for k, v in case.options.items() if _holds(v, case.answer)]
    if len(named) > 1:
        named = [k for k in named if not any(_inside(case.options, k, o) for o in named)]
    if named:
        return Grade(named == [wanted], f"the answer names option {', '.join(named)}")
    return grade(GradeTask("", text, case.answer))


def _inside(options: dict[str, str], letter: str, other: str) -> bool:
    """Whether one option's text is a part of another's ("red" in "dark red")."""
    return letter != other and _holds(options[letter], options[other])


def _letter_of_reference(case: _Case) -> str | None:
    alone = _LETTER_ALONE.fullmatch(case.reference)
    if alone and (case.options or alone[1].isupper()) and not _asks_for_sign(case.question):
        return alone[1].upper()
    leads = _LETTER_LEADS.fullmatch(case.reference)
    if leads and leads[3]:
        return leads[1] or leads[2]
    same = [k for k, v in case.options.items() if words_of(v) == words_of(case.reference)]
    return same[0] if len(same) == 1 else None


def _asks_for_sign(question: str) -> bool:
    return bool(re.search(r"\b(?:which|what) letter\b|\bletters?\b.*\bwritten\b", question.lower()))


def _text_after_letter(reference: str) -> str:
    leads = _LETTER_LEADS.fullmatch(reference)
    return (leads[3] or "") if leads else ""


def _letter_in(answer: str) -> str | None:
    alone = _LETTER_ALONE.fullmatch(answer.strip())
    if alone:
        return alone[1].upper()
    leads = _LETTER_LEADS.match(answer)
    if leads:
        return leads[1] or leads[2]
    named = _LETTER_NAMED.findall(answer)
    if named:
        return str(named[-1]).upper()
    subject = re.match(r"([A-J])\s+(?:is|are|has|was|lies|shows|looks)\b", answer)
    if subject:
        return subject[1]
    ordinal = re.search(r"\b(\w+) (?:option|choice|answer)\b", normalise(answer))
    if ordinal and stem(ordinal[1]) in _ORDINALS:
        return chr(ord("A") - 1 + _ORDINALS[stem(ordinal[1])])
    loose = set(re.findall(r"(?<![\w'])(?:\(([B-HJ])\)|([B-HJ]))(?![\w'])", answer))
    letters = {a or b for a, b in loose}
    return letters.pop() if len(letters) == 1 else None


def _grade_yes_no(case: _Case) -> Grade | None:
    reference = words_of(case.reference)
    if not reference or reference[0] not in _YES | _NO or len(reference) > 1:
        return None
    wanted = reference[0] in _YES
    found = _polarity(case.answer, case.question)
    if found is None:
        return Grade(False, "the answer is neither yes nor no")
    return Grade(found == wanted, f"the answer says {'yes' if found else 'no'}")


def _polarity(answer: str, question: str) -> bool | None:
    said = tokens(answer)
    if said[0] in _YES | _NO and not (said[0] == "no" and said[1:2] == ("doubt",)):
        return said[0] in _YES
    marks = {t in _YES for t in said if t in (_YES | _NO) - {"correct"}}
    if _HEDGE.search(normalise(answer)):
        return None
    if len(marks) == 1 and "no" not in said:
        return marks.pop()
    asked = {stem(t) for t in tokens(question)} - STOP_WORDS
    if asked & {stem(t) for t in said}:
        return not any(t in NEGATIONS or t.endswith("n't") for t in said)
    return None


def _grade_list(case: _Case) -> Grade | None:
    wanted = _entries(_part(case.reference))
    if len(wanted) < 2:
        return None
    is_bracketed = case.reference.strip()[0] in "([{" or ">" in case.reference
    numbers = quantities(_part(case.reference))
    if len(numbers) == len(wanted) and all(_is_number(e) for e in wanted):
        return _grade_numbers(numbers, case, in_order=is_bracketed or _asks_for_order(case))
    if is_bracketed or _asks_for_order(case) or re.search("->|\u2192", case.reference):
        return Grade(_in_order(wanted, case.answer), "each part was sought in its order")
    missing = [entry for entry in wanted if not _holds(entry, case.answer)]
    found = _entries(case.answer)
    if missing:
        return Grade(False, f"the answer lacks {missing[0]}")
    extra = len(found) > len(wanted) and all(len(e.split()) <= 4 for e in found)
    return Grade(not extra, "the answer holds more" if extra else "the answer holds each part")


def _grade_ordinal(case: _Case) -> Grade | None:
    """The first, the second ... also as "portrait 1" where the answer names one place only."""
    wanted = [_ORDINALS.get(stem(word)) for word in words_of(case.reference)]
    if len(wanted) != 1 or wanted[0] is None:
        return None
    said = tokens(case.answer)
    found = {_ORDINALS[stem(t)] for t in said if stem(t) in _ORDINALS}
    found |= {int(t) for t in said if t.isdigit() and int(t) <= len(_ORDINALS)}
    if len(found) != 1:
        return None
    return Grade(found == set(wanted), f"the answer names place {found.pop()}")


def _asks_for_order(case: _Case) -> bool:
    return bool(_ORDERED.search(case.question))


def _entries(text: str) -> list[str]:
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text.strip().rstrip("."))
    parts = (part.strip(" ()[]{}.\"'") for part in _SPLIT.split(text))
    return [re.sub(r"^\d+[.)]\s+", "", part) for part in parts if any(c.isalnum() for c in part)]


def _is_number(entry: str) -> bool:
    return len(quantities(entry)) == 1 and len(tokens(entry)) <= 2


def _grade_numbers(wanted: tuple[Quantity, ...], case: _Case, *, in_order: bool) -> Grade:
    found = list(quantities(_part(case.answer)))
    if len(found) > len(wanted):
        found = list(quantities(_part(_bracketed(case.answer))))
    if len(found) != len(wanted):
        return Grade(False, f"{len(found)} numbers in the answer, {len(wanted)} in the reference")
    if not in_order:
        found.sort(key=lambda q: q.value)
        wanted = tuple(sorted(wanted, key=lambda q: q.value))
    same = all(is_same_quantity(w, f) for w, f in zip(wanted, found, strict=True))
    return Grade(same, "the numbers agree" if same else "the numbers differ")


def _part(text: str) -> str:
    """A text with a space after each comma that parts numbers; within brackets all commas do."""
    text = _BRACKETS.sub(lambda match: re.sub(r",(?=\S)", ", ", match[0]), text)
    return _BETWEEN.sub(", ", text)


_BRACKETS = re.compile(r"[(\[][^()\[\]]*[)\]]")


def _bracketed(text: str) -> str:
    """What stands in the last brackets, or the text."""
    found = re.findall(r"[(\[]([^()\[\]]*\d[^()\[\]]*)[)\]]", text)
    return str(found[-1]) if found else text


def _in_order(entries: list[str], answer: str) -> bool:
    said, position = words_of(answer), 0
    for entry in entries:
        sought = words_of(entry)
        place = _find(sought, said, position)
        if place < 0:
            return False
        position = place + len(sought)
    return True


def _grade_code(case: _Case) -> Grade | None:
    """Codes, times, dates and long numbers agree sign for sign, whatever parts their groups."""
    reference = normalise(case.reference).strip(" .")
    if not _CODE.fullmatch(reference) or len(tokens(reference)) > 4:
        return None
    numbers = quantities(reference)
    if len(numbers) == 1 and (numbers[0].dimension or reference[0].isdigit()):
        return None
    wanted = re.sub(r"[^a-z0-9]", "", reference)
    pattern = r"[ ./:#-]*".join(map(re.escape, wanted))
    same = re.search(rf"(?<![a-z0-9]){pattern}(?![a-z0-9]|[.:/-]\d)", normalise(case.answer))
    return Grade(bool(same), "the signs agree" if same else "the signs differ")


def _grade_number(case: _Case) -> Grade | None:
    wanted = quantities(case.reference)
    if len(wanted) != 1 or len(tokens(case.reference)) > 4 or re.search(r"[a-z]\d|\d[A-Z]",
                                                                     case.reference):  # fmt: skip
        return None
    rest = {stem(t) for t in tokens(case.reference) if not t[0].isdigit()} - STOP_WORDS
    if not wanted[0].dimension and rest & set().union(*RIVALS):
        return None
    found = _committed(case)
    if found is None:
        return Grade(False, "the answer holds no number, or several")
    same = is_same_quantity(wanted[0], found)
    return Grade(same, f"the number {found.value:g} {'agrees' if same else 'does not agree'}")


def _committed(case: _Case) -> Quantity | None:
    """The one number that an answer commits to: alone, before the thing asked for, or all alike."""
    found = quantities(case.answer)
    if not found and re.search(r"\b(?:no|none|zero|not any)\b", normalise(case.answer)):
        return Quantity(0.0)
    ordinals = {_ORDINALS[s] for s in map(stem, tokens(case.answer)) if s in _ORDINALS}
    if not found and len(ordinals) == 1:
        return Quantity(float(ordinals.pop()))
    if len({(q.value, q.dimension) for q in found}) <= 1:
        return found[0] if found else None
    asked = {stem(t) for t in tokens(case.question)} - STOP_WORDS
    near = [q for q in found if q.word and stem(q.word) in asked]
    if len({q.value for q in near}) == 1:
        return near[0]
    sums = re.findall(r"=\s*([^=]+)$", case.answer) or re.findall(_SUM, case.answer)
    last = quantities(sums[-1]) if sums else ()
    if last:
        return last[0]
    dimension = {q.dimension for q in quantities(case.reference)} - {""}
    fitting = [q for q in found if q.dimension in dimension]
    return fitting[0] if len(fitting) == 1 else None


def _grade_text(case: _Case) -> Grade:
    answer = re.sub(r"\([^()]*\)", " ", case.answer)
    if _holds(case.reference, answer):
        rival = _rival(case.reference, answer, case.question) or _rejected(case)
        if rival or _HEDGE.search(normalise(answer)):
            return Grade(False, f"the answer also says {rival or 'that it is unsure'}")
        return Grade(True, "the answer holds the reference")
    if _is_denied(case.answer) != _is_denied(case.reference):
        return Grade(False, "one denies what the other says")
    if _rival(case.reference, case.answer, case.question) or _rejected(case):
        return Grade(False, "the answer says something else of the same kind")
    return _grade_words(case)


def _grade_words(case: _Case) -> Grade:
    """The grade by shared words, where the answer does not hold the reference as it stands."""
    wanted, said, asked = (
        {stem(t) for t in words_of(text) if t not in STOP_WORDS}
        for text in (case.reference, case.answer, case.question)
    )
    if wanted and wanted <= said:
        return Grade(True, "the answer holds each word of the reference")
    if wanted - asked and wanted - asked <= said:
        return Grade(True, "the answer holds what the question left open")
    if said - asked and said - asked <= wanted and wanted - said <= asked:
        return Grade(True, "the answer holds what the question left open")
    if _is_misspelt(case.reference, case.answer):
        return Grade(True, "the answer equals the reference but for a slip of spelling")
    if not wanted or not said or _ASKS_FOR_TEXT.search(case.question):
        return Grade(False, "other words than the reference")
    return Grade(None, "the words agree in part" if wanted & said else "the words differ")


_EITHER = re.compile(r"(?:^|[,:]|\bis|\bare)\s*([^,:?.]+?),?\s+or\s+([^,:?.]+)", re.IGNORECASE)


def _rejected(case: _Case) -> str | None:
    """The alternative of the question ("the cup or the plate") that the answer takes instead."""
    sides = _EITHER.findall(case.question)
    if not sides:
        return None
    left, right = (words_of(side) for side in sides[-1])
    wanted = words_of(case.reference)
    n = len(wanted)
    if left[-n:] == wanted:
        other = right[:n]
    elif right[:n] == wanted:
        other = left[-n:]
    else:
        return None
    mine, theirs = (frozenset(stem(w) for w in s if w not in STOP_WORDS) for s in (wanted, other))
    # Of two alternatives that an answer names, it takes the first: "the cup is larger than ...".
    said = words_of(case.answer)
    for place, word in enumerate(said):
        if stem(word) in mine - theirs:
            return None
        if stem(word) in theirs - mine:
            return None if _is_under_negation(said[:place]) else word
    return None


def _holds(part: str, whole: str) -> bool:
    """Whether a text holds another word for word, without a negation right before it."""
    sought = tuple(stem(t) for t in words_of(part))
    raw = words_of(whole)
    said = tuple(stem(t) for t in raw)
    place = _find(sought, said, 0)
    while place >= 0:
        if set(words_of(part)) & NEGATIONS or not _is_under_negation(raw[:place]):
            return True
        place = _find(sought, said, place + 1)
    return False


def _is_under_negation(before: tuple[str, ...]) -> bool:
    """Whether one of the last three words denies what follows; "but" ends what is denied."""
    for distance, word in enumerate(reversed(before[-3:]), start=1):
        if word in ("but", "rather", "instead", "so", "because", "since"):
            return False
        # "No, it is red" denies nothing of what follows.
        if word == "no" and (distance > 2 or len(before) == distance):
            continue
        if word in NEGATIONS or word.endswith("n't"):
            return True
    return False


def _find(sought: tuple[str, ...], said: tuple[str, ...], start: int) -> int:
    if not sought:
        return -1
    last = len(said) - len(sought)
    places = range(start, last + 1)
    return next((i for i in places if said[i : i + len(sought)] == sought), -1)


def _is_denied(text: str) -> bool:
    return any(t in NEGATIONS or t.endswith("n't") for t in tokens(text))


def _rival(reference: str, answer: str, question: str) -> str | None:
    """A word of the answer that competes with one of the reference, such as another colour."""
    wanted = {stem(t) for t in tokens(reference)}
    said = {stem(t) for t in tokens(answer)}
    for kind in RIVALS:
        others = (said & kind) - wanted
        if wanted & said & kind:
            others -= {stem(t) for t in tokens(question)}
        if wanted & kind and others and len(words_of(answer)) <= 12:
            return sorted(others)[0]
    return None


def _is_misspelt(reference: str, answer: str) -> bool:
    wanted, said = normalise(reference).strip(" ."), normalise(answer).strip(" .")
    if len(wanted) < 8 or any(c.isdigit() for c in wanted + said):
        return False
    return difflib.SequenceMatcher(None, wanted, said).ratio() >= 0.92


_RULES: tuple[Callable[[_Case], Grade | None], ...] = (
    _grade_letter,
    _grade_yes_no,
    _grade_list,
    _grade_ordinal,
    _grade_code,
    _grade_number,
)
