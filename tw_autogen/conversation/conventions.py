"""`CONVENTIONS`: how every role reads what a request leaves open, as one line of each role's prompt."""

CONVENTIONS = (
    "Where the request leaves it open, a library's default holds: missing is what pandas reads as missing, and "
    "a standard deviation is that of pandas (ddof=1). What is random gets one fixed seed. The answer names the "
    "choices that matter, unless a strict form was asked for: what counts as missing, which column, the ddof, the seed."
)
