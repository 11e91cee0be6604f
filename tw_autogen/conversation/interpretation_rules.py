"""`INTERPRETATION_RULES`: how every role reads what a request leaves open, as one line of each role's prompt."""

INTERPRETATION_RULES = (
    "The form asked for comes before any other rule: `only a number` is a number, with no choice named; an answer that "
    "it can't hold is given in the fewest words. What is computed follows the literal words, then a library's default: "
    "missing is what pandas reads as missing, a standard deviation has ddof=1, a z-score counts by its magnitude, what "
    "is random gets one fixed seed. Of two natural readings compute both at once, answer the more literal one, and "
    "name such choices and the other result in a sentence."
)
