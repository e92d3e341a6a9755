"""Write the source of a decoder: one function for one message in one version, nested structs inlined.

Neighbours of fixed size are read by one struct, together with the length, count or tag byte behind them. In the source
`p` is the position and `end` the buffer's. No slice and no loop is written without a check that the bytes for
it are there; what runs past the end in between, the struct module and indexing notice by themselves.
"""

import struct
from typing import Any, Final
from uuid import UUID

from riverlog.wire import primitives
from riverlog.wire.limits import ARRAY_NESTING_MAX, MESSAGE_ELEMENTS_MAX, REQUEST_ELEMENTS_MAX
from riverlog.wire.primitives import STRING_BYTES_MAX, Decoder
from riverlog.wire.source import FunctionSource, bytes_min
from riverlog.wire.types import (
    RECORDS,
    STRING,
    UUID_,
    Array,
    Field,
    Fixed,
    Struct,
    Type,
    Variable,
    fields_of,
    is_flexible,
    is_record,
    is_request,
)

_NAMES: Final[dict[str, object]] = {
    "long_varint": primitives.long_varint,
    "refuse": primitives.refuse,
    "refuse_elements": primitives.refuse_elements,
    "refuse_text": primitives.refuse_text,
    "refuse_tag": primitives.refuse_tag,
    "skip_tagged_fields": primitives.skip_tagged_fields,
    "unpack_from": struct.unpack_from,
    "uuid_of": primitives.uuid_of,
    "varint": primitives.varint,
}


def compile_decoder(declaration: type[Any], version: int) -> Decoder:
    """Compile the decoder of one version of a message."""
    return _Decoding(declaration, version).source.compiled("decode", f"decode {declaration.__name__} {version}")


class _Decoding:
    """The writing of one decoder. `_run` holds fixed-size values that are named but not yet read."""

    def __init__(self, declaration: type[Any], version: int) -> None:
        self.source = FunctionSource("decode(buffer, p)", _NAMES)
        self._version = version
        self._flexible = is_flexible(declaration, version)
        self._immutable = is_record(declaration)
        self._is_request = is_request(declaration)
        self._depth = 0
        self._run: list[tuple[str, str]] = []
        self.source.line("end = len(buffer)")
        self.source.line("elements = 0")
        message = self._struct(declaration)
        self.source.line(f"return {message}, p")

    def _struct(self, declaration: type[Any]) -> str:
        """Read a struct; give the expression that builds it."""
        self._depth += 1
        assert self._depth <= ARRAY_NESTING_MAX
        values: dict[str, str] = {}
        tagged: list[Field] = []
        for field in fields_of(declaration):
            values[field.name] = self._default(field)
            if field.wire.is_in(self._version):
                if field.wire.tag is None:
                    values[field.name] = self._value(field.type, field.wire.is_nullable_in(self._version), field.name)
                else:
                    tagged.append(field)
        if self._flexible:
            self._tagged_fields(tagged, values)
        self._read_run()
        self._depth -= 1
        return f"{self.source.name(declaration, declaration.__name__)}({', '.join(values.values())})"

    def _value(self, type_: Type, nullable: bool, label: str) -> str:
        """Read a value; give the expression for it, which stands until the end of the enclosing loop."""
        match type_:
            case Fixed():
                value = self._fixed(type_.code)
                return f"uuid_of({value})" if type_ is UUID_ else value
            case Variable():
                return self._variable(type_, nullable, label)
            case Array():
                return self._array(type_.element, nullable, label)
            case Struct():
                return self._nullable_struct(type_) if nullable else self._struct(type_.declaration)

    def _variable(self, type_: Variable, nullable: bool, label: str) -> str:
        value = self.source.fresh()
        length = self._length(type_.length_code, text=label if type_ is STRING else None)
        stop = self.source.fresh()
        self.source.line(f"{stop} = p + {length}")
        slice_ = f"buffer[p:{stop}]"
        read = f"str({slice_}, 'utf-8')" if type_ is STRING else slice_ if type_ is RECORDS else f"bytes({slice_})"
        outside = f"not p <= {stop} <= end"
        if nullable:
            with self.source.block(f"if {length} == -1"):
                self.source.line(f"{value} = None")
            with self.source.block(f"elif {outside}"):
                self.source.line(f"refuse({label!r}, {length}, end - p)")
            with self.source.block("else"):
                self.source.line(f"{value} = {read}")
                self.source.line(f"p = {stop}")
        else:
            with self.source.block(f"if {outside}"):
                self.source.line(f"refuse({label!r}, {length}, end - p)")
            self.source.line(f"{value} = {read}")
            self.source.line(f"p = {stop}")
        return value

    def _array(self, element: Fixed | Variable | Struct, nullable: bool, label: str) -> str:
        values = self.source.fresh()
        count = self._length("i")
        element_bytes_min = bytes_min(element, self._version, self._flexible)
        assert element_bytes_min > 0
        with self.source.block(f"if {count} == 0"):
            self.source.line(f"{values} = {'()' if self._immutable else '[]'}")
        if nullable:
            with self.source.block(f"elif {count} == -1"):
                self.source.line(f"{values} = None")
        with self.source.block(f"elif not 0 < {count} * {element_bytes_min} <= end - p"):
            self.source.line(f"refuse({label!r}, {count}, end - p)")
        with self.source.block("else"):
            self._elements(element, values, count, label)
            if self._immutable:
                self.source.line(f"{values} = tuple({values})")
        return values

    def _elements(self, element: Fixed | Variable | Struct, values: str, count: str, label: str) -> None:
        is_numbers = isinstance(element, Fixed) and element is not UUID_
        if self._is_request or not is_numbers:
            count_max = REQUEST_ELEMENTS_MAX if self._is_request else MESSAGE_ELEMENTS_MAX
            self.source.line(f"elements += {count}")
            with self.source.block(f"if elements > {count_max}"):
                self.source.line(f"refuse_elements({label!r}, elements, {count_max})")
        if is_numbers:
            assert isinstance(element, Fixed)
            self.source.line(f"{values} = list(unpack_from(f'>{{{count}}}{element.code}', buffer, p))")
            self.source.line(f"p += {count} * {element.size}")
            return
        self.source.line(f"{values} = []")
        with self.source.block(f"for _ in range({count})"):
            value = self._value(element, False, label)
            self._read_run()
            self.source.line(f"{values}.append({value})")

    def _nullable_struct(self, type_: Struct, null: int = -1) -> str:
        """Read the int8 that says whether a struct follows (KIP-893), and the struct if so."""
        value = self.source.fresh()
        present = self._fixed("b")
        self._read_run()
        with self.source.block(f"if {present} <= {null}"):
            self.source.line(f"{value} = None")
        with self.source.block("else"):
            struct = self._struct(type_.declaration)
            self.source.line(f"{value} = {struct}")
        return value

    def _tagged_fields(self, known: list[Field], values: dict[str, str]) -> None:
        """Read the tagged fields at a struct's end: known ones into `values`, unknown ones past."""
        count = self._fixed("B")
        self._read_run()
        if not known:
            with self.source.block(f"if {count}"):
                self.source.line(f"p = skip_tagged_fields(buffer, p, {count})")
            return
        for field in known:
            value = self.source.fresh()
            self.source.line(f"{value} = {values[field.name]}")
            values[field.name] = value
        with self.source.block(f"if {count}"):
            with self.source.block(f"if {count} > 127"):
                self.source.line(f"{count}, p = long_varint(buffer, p, {count})")
            tag, size, stop = self.source.fresh(), self.source.fresh(), self.source.fresh()
            with self.source.block(f"for _ in range({count})"):
                self.source.line(f"{tag}, p = varint(buffer, p)")
                self.source.line(f"{size}, p = varint(buffer, p)")
                self.source.line(f"{stop} = p + {size}")
                with self.source.block(f"if {stop} > end"):
                    self.source.line(f"refuse('a tagged field', {size}, end - p)")
                opening = "if"
                for field in known:
                    with self.source.block(f"{opening} {tag} == {field.wire.tag}"):
                        nullable = field.wire.is_nullable_in(self._version)
                        if nullable and isinstance(field.type, Struct):
                            value = self._nullable_struct(field.type, null=0)
                        else:
                            value = self._value(field.type, nullable, field.name)
                        self._read_run()
                        self.source.line(f"{values[field.name]} = {value}")
                        with self.source.block(f"if p != {stop}"):
                            self.source.line(f"refuse_tag({field.name!r})")
                    opening = "elif"
                with self.source.block("else"):
                    self.source.line(f"p = {stop}")

    def _length(self, code: str, text: str | None = None) -> str:
        """Read a length or count as a number that is -1 for null; of `text`, one that a string may have."""
        length = self._fixed("B" if self._flexible else code)
        self._read_run()
        if self._flexible:
            with self.source.block(f"if {length} > 127"):
                self.source.line(f"{length}, p = long_varint(buffer, p, {length})")
                if text is not None:
                    with self.source.block(f"if {length} > {STRING_BYTES_MAX + 1}"):
                        self.source.line(f"refuse_text({text!r}, {length} - 1)")
            self.source.line(f"{length} -= 1")
        return length

    def _fixed(self, code: str) -> str:
        """Name a fixed-size value; it can be used once the run is read."""
        value = self.source.fresh()
        self._run.append((code, value))
        return value

    def _read_run(self) -> None:
        """Read the values named since the last run, all by one struct."""
        if not self._run:
            return
        codes = "".join(code for code, _ in self._run)
        unpack, size = self.source.struct(codes, "unpack_from")
        if codes == "B":
            self.source.line(f"{self._run[0][1]} = buffer[p]")
        else:
            self.source.line(f"{', '.join(value for _, value in self._run)}, = {unpack}(buffer, p)")
        self.source.line(f"p += {size}")
        self._run.clear()

    def _default(self, field: Field) -> str:
        default = field.default
        return self.source.name(default, "default") if isinstance(default, UUID) else repr(default)
