"""Write the source of an encoder: one function for one message in one version, nested structs inlined.

Neighbours of fixed size are written by one struct, together with the length or count behind them and the empty list of
tagged fields that ends most structs. Records are not written at all: the bytes so far, the records as they are, and
the bytes behind them become three parts. A value that does not fit its type is our own mistake and raises.
"""

import struct
from typing import Any, Final
from uuid import UUID

from riverlog.model.ports import FileRange
from riverlog.wire import primitives
from riverlog.wire.primitives import ItemEncoder
from riverlog.wire.source import FunctionSource
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
)

_NAMES: Final[dict[str, object]] = {
    "FileRange": FileRange,
    "cut": primitives.cut,
    "pack": struct.pack,
    "varint_bytes": primitives.varint_bytes,
    "varint_rest": primitives.varint_rest,
}


def compile_encoder(declaration: type[Any], version: int) -> ItemEncoder:
    """Compile the encoder of one version of a message."""
    return _Encoding(declaration, version).source.compiled("encode", f"encode {declaration.__name__} {version}")


class _Encoding:
    """The writing of one encoder. `_run` holds fixed-size values that are ready but not yet written."""

    def __init__(self, declaration: type[Any], version: int) -> None:
        self.source = FunctionSource("encode(message, out)", _NAMES)
        self._version = version
        self._flexible = is_flexible(declaration, version)
        self._out = "out"
        self._run: list[tuple[str, str]] = []
        self.source.line("parts = []")
        self._struct(declaration, "message")
        self._write_run()
        self.source.line("parts.append(out)")
        self.source.line("return parts")

    def _struct(self, declaration: type[Any], struct: str) -> None:
        tagged: list[Field] = []
        for field in fields_of(declaration):
            if field.wire.is_in(self._version):
                if field.wire.tag is None:
                    self._value(field.type, f"{struct}.{field.name}", field.wire.is_nullable_in(self._version))
                else:
                    tagged.append(field)
        if self._flexible:
            self._tagged_fields(tagged, struct)

    def _value(self, type_: Type, value: str, nullable: bool) -> None:
        match type_:
            case Fixed():
                self._run.append((type_.code, f"{value}.bytes" if type_ is UUID_ else value))
            case Variable():
                if type_ is RECORDS:
                    self._records(value)
                else:
                    self._variable(type_, value, nullable)
            case Array():
                self._array(type_.element, value, nullable)
            case Struct():
                if nullable:
                    self._nullable_struct(type_, value)
                else:
                    self._struct(type_.declaration, value)

    def _variable(self, type_: Variable, value: str, nullable: bool) -> None:
        raw = self.source.fresh()
        length = self.source.fresh()
        encoded = value
        if type_ is STRING:  # a message may repeat what a client sent, and be longer than that version has room for
            encoded = f"cut({value}).encode()" if value.endswith("_message") else f"{value}.encode()"
        if nullable:
            with self.source.block(f"if {value} is None"):
                self.source.line(f"{raw} = b''")
                self.source.line(f"{length} = {self._null}")
            with self.source.block("else"):
                self.source.line(f"{raw} = {encoded}")
                self.source.line(f"{length} = {self._counted(f'len({raw})')}")
        else:
            self.source.line(f"{raw} = {encoded}")
            self.source.line(f"{length} = {self._counted(f'len({raw})')}")
        self._length(length, type_.length_code)
        self.source.line(f"{self._out} += {raw}")

    def _records(self, value: str) -> None:
        assert self._out == "out"  # a tagged field must know its size, so it cannot hold records
        raw = self.source.fresh()
        length = self.source.fresh()
        self.source.line(f"{raw} = {value}")
        with self.source.block(f"if {raw} is None"):
            self.source.line(f"{length} = {self._null}")
        with self.source.block(f"elif type({raw}) is FileRange"):
            self.source.line(f"{length} = {self._counted(f'{raw}.size')}")
        with self.source.block("else"):
            self.source.line(f"{length} = {self._counted(f'len({raw})')}")
        self._length(length, RECORDS.length_code)
        with self.source.block(f"if {length} > {self._counted('0')}"):  # null and empty records are no part
            self.source.line(f"parts += (out, {raw})")
            self.source.line("out = bytearray()")

    def _array(self, element: Fixed | Variable | Struct, value: str, nullable: bool) -> None:
        values = self.source.fresh()
        count = self.source.fresh()
        self.source.line(f"{values} = {value}")
        if nullable:
            with self.source.block(f"if {values} is None"):
                self.source.line(f"{values} = ()")
                self.source.line(f"{count} = {self._null}")
            with self.source.block("else"):
                self.source.line(f"{count} = {self._counted(f'len({values})')}")
        else:
            self.source.line(f"{count} = {self._counted(f'len({values})')}")
        self._length(count, "i")
        if isinstance(element, Fixed) and element is not UUID_:
            self.source.line(f"{self._out} += pack(f'>{{len({values})}}{element.code}', *{values})")
            return
        one = self.source.fresh()
        with self.source.block(f"for {one} in {values}"):
            self._value(element, one, False)
            self._write_run()

    def _nullable_struct(self, type_: Struct, value: str, null: int = -1) -> None:
        """Write the int8 that says whether a struct follows (KIP-893), and the struct if so."""
        self._run.append(("b", f"{null} if {value} is None else 1"))
        self._write_run()
        with self.source.block(f"if {value} is not None"):
            self._struct(type_.declaration, value)
            self._write_run()

    def _tagged_fields(self, known: list[Field], struct: str) -> None:
        """Write the tagged fields that differ from their default, in the order of their tags."""
        if not known:
            self._run.append(("x", ""))
            return
        count, tagged = self.source.fresh(), self.source.fresh()
        self._run.append(("B", count))
        run, self._run = self._run, []
        outer, self._out = self._out, self.source.fresh()
        self.source.line(f"{count} = 0")
        self.source.line(f"{tagged} = b''")
        for field in sorted(known, key=lambda field: field.wire.tag or 0):
            value = f"{struct}.{field.name}"
            with self.source.block(f"if {self._differs(field, value)}"):
                self.source.line(f"{count} += 1")
                self.source.line(f"{self._out} = bytearray()")
                if isinstance(field.type, Struct) and field.wire.is_nullable_in(self._version):
                    self._nullable_struct(field.type, value, null=0)  # among tagged fields the int8 is a varint
                else:
                    self._value(field.type, value, False)
                self._write_run()
                tag = repr(primitives.varint_bytes(field.wire.tag or 0))
                self.source.line(f"{tagged} += {tag} + varint_bytes(len({self._out})) + {self._out}")
        self._out = outer
        self._run = run
        self._write_run()
        with self.source.block(f"if {count}"):
            self.source.line(f"{self._out} += {tagged}")

    def _differs(self, field: Field, value: str) -> str:
        if isinstance(field.type, Struct):  # of defaults only, it counts as absent: Kafka leaves it out too
            default = self.source.name(field.type.declaration(), "default")
            if field.wire.is_nullable_in(self._version):  # to Kafka, absence means the defaults; null has to be said
                return f"{value} != {default}"
            return f"{value} is not None and {value} != {default}"
        match field.default:
            case None:
                return f"{value} is not None"
            case []:
                return value
            case UUID():
                return f"{value} != {self.source.name(field.default, 'default')}"
            case _:
                return f"{value} != {field.default!r}"

    @property
    def _null(self) -> str:
        return "0" if self._flexible else "-1"

    def _counted(self, count: str) -> str:
        """Return the number on the wire for a count: compact ones are one higher, so that 0 is null."""
        return f"{count} + 1" if self._flexible else count

    def _length(self, length: str, code: str) -> None:
        """Write a length, with the run before it."""
        if not self._flexible:
            self._run.append((code, length))
            self._write_run()
            return
        self._run.append(("B", f"{length} if {length} < 128 else {length} & 127 | 128"))
        if len(self._run) == 1:
            self._run = [("B", length)]
            with self.source.block(f"if {length} < 128"):
                self._write_run()
            with self.source.block("else"):
                self.source.line(f"{self._out} += varint_bytes({length})")
            return
        self._write_run()
        with self.source.block(f"if {length} > 127"):
            self.source.line(f"{self._out} += varint_rest({length})")

    def _write_run(self) -> None:
        """Write the values made ready since the last run, all by one struct."""
        if not self._run:
            return
        codes = "".join(code for code, _ in self._run)
        values = ", ".join(value for _, value in self._run if value)
        if codes in ("B", "x"):
            self.source.line(f"{self._out}.append({values or '0'})")
        else:
            pack, _ = self.source.struct(codes, "pack")
            self.source.line(f"{self._out} += {pack}({values})")
        self._run.clear()
