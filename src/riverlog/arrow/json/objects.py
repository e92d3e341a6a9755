"""Which values are exactly one JSON object, by their braces.

A parser that is given many values in a row would take `{}{}`, `{` and `}` for three objects, and give each row the
object of another. So each value is looked at alone before: one brace opens it, the same one closes it, and nothing
stands around it. What else may be wrong inside is left to the parser, which can no longer leave its row; nor does it
run out of stack, for the depth is bounded, too.

Python for numba to compile; it also runs as it is.
"""

from typing import Any, Final

DEPTH_MAX: Final = 500
_QUOTE, _BACKSLASH, _SPACE = ord('"'), ord("\\"), ord(" ")
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = ord("{"), ord("}"), ord("["), ord("]")
_TAB, _NEWLINE, _RETURN = ord("\t"), ord("\n"), ord("\r")


def find_objects(content: Any, ends: Any, is_object: Any) -> None:
    """Note for each value whether it is one object; `ends` begins with where the first one starts."""
    for row in range(len(is_object)):
        depth, begun, ended, in_string, escaped, wrong = 0, False, False, False, False, False
        for position in range(ends[row], ends[row + 1]):
            byte = content[position]
            if in_string:
                if byte < _SPACE:
                    wrong = True
                elif escaped:
                    escaped = False
                elif byte == _BACKSLASH:
                    escaped = True
                elif byte == _QUOTE:
                    in_string = False
            elif byte in (_SPACE, _TAB, _NEWLINE, _RETURN):
                continue
            elif ended or byte < _SPACE or not (begun or byte == _OPEN):
                wrong = True
            elif byte in (_OPEN, _OPEN_LIST):
                begun = True
                depth += 1
                wrong = depth > DEPTH_MAX
            elif byte in (_CLOSE, _CLOSE_LIST):
                depth -= 1
                ended = depth == 0
            elif byte == _QUOTE:
                in_string = True
            if wrong:
                break
        is_object[row] = ended and not wrong
