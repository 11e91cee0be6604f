"""`CONVENTIONS`: how every role reads what a request leaves open, as one line of each role's prompt."""

CONVENTIONS = (
    "The request's literal words win, then a library's default: missing is what pandas reads as missing, a standard "
    "deviation is that of pandas (ddof=1), a z-score counts by its magnitude, what is random gets one fixed seed. Of "
    "two natural readings compute both at once, answer the more literal one, and name the other with its result in a "
    "sentence. The answer names such choices, unless a strict form was asked for."
)
