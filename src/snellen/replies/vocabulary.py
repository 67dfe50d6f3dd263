"""The words that the reader of answers knows, as tables: add a word to its table to teach it."""

from __future__ import annotations

# Words that are a verdict wherever they stand alone.
JUDGED: dict[str, bool] = {
    **dict.fromkeys(
        ("true", "correct", "right", "pass", "passed", "wahr", "richtig", "korrekt", "vrai",
         "correcte", "verdadero", "correcto", "correcta", "vero", "corretto", "верно",
         "правильно", "صحيح", "صحيحة", "正确", "正確", "正确的", "完全正确", "完全正確", "对",
         "對",
         "真", "符合", "正しい", "参", "참", "✅", "✓", "✔"),
        True,
    ),
    **dict.fromkeys(
        ("false", "incorrect", "wrong", "untrue", "fail", "failed", "not true", "not correct",
         "not right", "falsch", "unwahr", "nicht wahr", "nicht richtig", "nicht korrekt", "faux",
         "incorrecte", "falso", "incorrecto", "incorrecta", "non corretto", "неверно",
         "неправильно", "خطأ", "خاطئة", "غير صحيح", "غير صحيحة", "不正确", "不正確", "错误",
         "錯誤",
         "错误的", "完全错误", "完全錯誤", "错", "不对", "不對", "不符合", "假", "誤り", "거짓",
         "❌", "✗",
         "✘"),
        False,
    ),
}  # fmt: skip
# Words that answer a question: a verdict only as the whole reply, in JSON or behind a name.
REPLIED: dict[str, bool] = {
    **dict.fromkeys(("yes", "ja", "oui", "sí", "si", "да", "نعم", "是", "是的", "はい",
    "네"), True),
    **dict.fromkeys(("no", "nein", "non", "нет", "لا", "不是", "否", "いいえ", "아니요"), False),
    "1": True, "0": False, "1.0": True, "0.0": False,
}  # fmt: skip
NULLS = frozenset({"", "null", "none", "nil", "nan", "n/a", "undefined"})

# What announces an answer: names, what may stand around them, and what links them to the answer.
VERDICT_NAMES = (
    "verdict", "judgment", "judgement", "judge", "decision", "ruling", "final answer", "判定",
    "判断", "判斷", "结论", "結論", "评判", "裁定", "urteil", "veredicto", "verdetto",
    "вердикт", "الحكم",
    "판정",
)  # fmt: skip
# These may as well name the answer under test: they count on the last line, before a colon.
SHARED_NAMES = (
    "answer", "result", "conclusion", "correct", "correctness", "is correct", "score", "grade",
    "rating", "pass", "passed", "satisfied", "antwort", "respuesta", "réponse", "risposta",
    "resposta", "ответ", "الإجابة", "答案", "回答", "结果", "結果",
)  # fmt: skip
CHOICE_NAMES = (
    "answer", "ans", "choice", "selection", "option", "letter", "verdict", "答案", "选项", "選項",
    "选择", "答え", "答", "正解", "정답", "antwort", "lösung", "réponse", "respuesta", "risposta",
    "resposta", "ответ", "الإجابة", "الجواب", "jawaban", "उत्तर", "cevap", "odpowiedź", "đáp án",
)  # fmt: skip
CHOOSING = (
    "i choose", "i select", "i pick", "i go with", "ich wähle", "je choisis", "elijo", "我选",
    "我选择",
)  # fmt: skip
QUALIFIERS = (
    "the", "my", "your", "final", "correct", "best", "right", "so", "thus", "therefore", "hence",
    "overall", "in conclusion", "die", "der", "das", "richtige", "endgültige", "la", "le", "el",
    "bonne", "mejor", "finale", "final", "最终", "最終", "正确", "正確", "所以", "因此", "我的",
)  # fmt: skip
AFTERNAMES = (
    "correcta", "correcte", "corretta", "correta", "finale", "final", "الصحيحة", "letter",
    "option", "choice",
)  # fmt: skip
SIGNS = (":", "=", "->", "→", "⇒", "=>", "】", "—", "–", " - ")
COPULAS = (
    "is", "was", "should be", "must be", "ist", "lautet", "est", "es", "è", "é", "هي", "هو", "は",
    "은", "는", "是", "为", "為", "应为", "应该是",
)  # fmt: skip
# What may stand around a bare answer without changing it.
CONNECTORS = (
    "so", "thus", "therefore", "hence", "ok", "okay", "sure", "it's", "it is", "->", "→", "✓",
    "✔", "✅",
)  # fmt: skip
FILLERS = ("the answer", "answer", "option", "choice", "letter", "选项", "選項", "选择", "选")
ENDINGS = ("です", "だ", "입니다", "이다", "的", "✓", "✔", "✅")
# Names of sections that may follow an announced verdict.
SECTIONS = (
    "reason", "reasons", "reasoning", "explanation", "justification", "rationale", "note",
    "confidence", "why", "理由", "原因", "解释", "begründung", "explication", "explicación",
)  # fmt: skip
# Names of what a judge restates before it answers; "answer" is then the tested one.
RESTATED = (
    "reference", "gold", "ground truth", "expected", "student", "candidate", "model",
    "prediction",
    "question", "参考答案", "标准答案", "学生", "问题", "referenz", "frage", "référence",
    "referencia",
)  # fmt: skip
# A line that ends in a colon and holds one of these reports what somebody else wrote.
REPORTS = (
    "says", "said", "reads", "wrote", "writes", "states", "stated", "claims", "contains", "text",
    "caption", "description", "answer", "student", "candidate", "model", "response", "sign",
    "reference", "instruction", "options", "example", "写道", "说", "学生", "描述",
)  # fmt: skip
# Words that take back, doubt or compare: behind an answer they make prose of it.
TURNS = (
    "but", "however", "though", "although", "yet", "wait", "actually", "hold on", "scratch that",
    "on second thought", "on second look", "correction", "rather", "instead", "or", "if",
    "unless",
    "except", "no", "not", "nein", "aber", "jedoch", "mais", "cependant", "pero", "sin embargo",
    "но", "однако", "لكن", "但", "但是", "不过", "然而", "等等", "等一下", "其实", "其實",
    "更正", "不对",
    "應該是", "应该是", "ただし", "しかし", "하지만",
)  # fmt: skip
HEDGES = (
    "maybe", "perhaps", "possibly", "probably", "likely", "partial", "partially", "partly",
    "mostly", "half", "somewhat", "almost", "nearly", "arguably", "unsure", "not sure",
    "not certain", "undecided", "ambiguous", "borderline", "depends", "debatable", "inconclusive",
    "mixed", "either", "could be", "might", "may be", "it seems", "i think", "i guess",
    "i suppose", "low confidence", "is possible", "is plausible", "teilweise", "vielleicht",
    "wahrscheinlich", "partiellement", "peut-être", "parcialmente", "quizás", "частично",
    "возможно", "جزئيا", "ربما", "可能", "也许", "部分", "基本", "不确定", "不太", "大概",
    "たぶん", "아마",
)  # fmt: skip
COMPARED = (
    "match", "mismatch", "differ", "differs", "different", "difference", "equal", "equals",
    "same",
    "identical", "agree", "agrees", "disagree", "contradict", "contradicts", "consistent",
    "inconsistent", "equivalent", "matches", "wrong", "incorrect", "correct", "true", "false",
    "gleich", "verschieden", "identique", "différent", "igual", "diferente", "совпадает",
    "отличается", "一致", "相同", "不同", "匹配", "相符", "不符", "矛盾", "错误", "正确",
    "同じ", "異なる",
)  # fmt: skip
REFUSALS = (
    "i'm sorry", "i’m sorry", "i am sorry", "sorry,", "i apologize", "i apologise", "i can't",
    "i can’t", "i cannot", "i am unable", "i'm unable", "i’m unable", "i am not able",
    "i'm not able", "i won't", "i won’t", "must decline", "as an ai", "unable to help",
    "unable to assist", "unable to comply", "对不起", "抱歉", "无法回答", "无法协助", "无法提供",
)  # fmt: skip

VERDICT_KEYS = frozenset(
    {"correct", "iscorrect", "verdict", "finalverdict", "judge", "judgment", "judgement",
     "decision", "answercorrect", "isanswercorrect", "answeriscorrect", "判定", "结论"}
)  # fmt: skip
SECOND_KEYS = frozenset(
    {"result", "score", "grade", "pass", "passed", "satisfied", "met", "label", "value", "rating",
     "answer", "status"}
)  # fmt: skip
CHOICE_KEYS = frozenset(
    {"answer", "letter", "choice", "option", "selected", "selection", "verdict", "result",
     "response", "output", "prediction", "selectedoption", "finalanswer", "correctanswer",
     "answerletter", "antwort", "答案", "选项"}
)  # fmt: skip
NOTE_KEYS = ("reason", "reasoning", "explanation", "justification", "why", "理由")
