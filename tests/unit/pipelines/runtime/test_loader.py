"""Files that define pipelines in every way, and those that do not, with what to do about it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from riverlog.pipelines.runtime.loader import NotLoaded, check_syntax, load, run_file

HEAD = """
from riverlog.pipelines import Pipeline
from riverlog.pipelines.pipeline import Output
from riverlog.pipelines.outputs import TopicTarget

def made(name, *outputs):
    pipeline = Pipeline(name)
    for output in outputs or (name,):
        pipeline.outputs.append(Output(output, None, TopicTarget("results")))
    return pipeline
"""


@pytest.fixture(autouse=True)
def modules() -> Iterator[None]:
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        if name.endswith(("revenue", "beside")):
            del sys.modules[name]


def write(folder: Path, text: str, *, head: str = HEAD) -> Path:
    file = folder / "revenue.py"
    file.write_text(head + text)
    return file


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("one = made('one')\ntwo = made('two')\nagain = one", ["one", "two"]),
        ("def pipeline():\n    return made('one')\ndef main():\n    raise SystemExit", ["one"]),
        ("def main():\n    return [made('one'), made('two')]", ["one", "two"]),
        ("one = made('one')\ndef main():\n    raise SystemExit", ["one"]),
        ("if __name__ == '__main__':\n    raise SystemExit\none = made('one', 'one', 'late')", ["one"]),
    ],
)
def test_pipelines_are_found(tmp_path: Path, text: str, names: list[str]) -> None:
    assert [pipeline.name for pipeline in load(write(tmp_path, text))] == names


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "revenue.py defines no pipeline; assign one to a variable"),
        ("def main():\n    pass", r"main\(\) in .*revenue.py returns no pipeline"),
        ("def pipeline():\n    return 7 // 0", r"revenue.py, line 13: ZeroDivisionError: integer division"),
        ("nothing", "revenue.py, line 12: NameError: name 'nothing' is not defined"),
        ("1 +", "revenue.py, line 12: invalid syntax"),
        ("raise ValueError", "revenue.py, line 12: ValueError$"),
        ("one = made('one', 'x')\ntwo = made('two', 'x')", "has two outputs called x"),
        ("one = Pipeline('one')", "the pipeline one in .* has no output"),
        ("one = Pipeline('no name')", "line 12: 'no name' is no name for a pipeline"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(NotLoaded, match=problem):
        load(write(tmp_path, "\n" + text if text else ""))


def test_a_path_below_the_working_directory_has_its_line_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "nothing", head="")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotLoaded, match=r"^revenue\.py, line 1: NameError"):
        load(Path("revenue.py"))


def test_what_is_no_python_is_told_without_running_it(tmp_path: Path) -> None:
    with pytest.raises(NotLoaded, match=r"revenue.py, line 2: '\(' was never closed"):
        check_syntax(write(tmp_path, "raise SystemExit\nprint(", head=""))
    with pytest.raises(NotLoaded, match="null bytes"):
        check_syntax(write(tmp_path, "\0", head=""))
    check_syntax(write(tmp_path, "raise SystemExit", head=""))


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotLoaded, match="there is no file"):
        load(tmp_path / "missing.py")
    other = tmp_path / "revenue.txt"
    other.write_text("")
    with pytest.raises(NotLoaded, match=r"ends in \.py"):
        load(other)


def test_modules_beside_the_file_are_found_and_its_functions_travel_by_value(tmp_path: Path) -> None:
    from pyspark import cloudpickle

    (tmp_path / "beside.py").write_text("factor = 2")
    file = write(tmp_path, "import beside\ndef twice(n):\n    return n * beside.factor", head="")
    path = list(sys.path)
    module = run_file(file)
    assert sys.path == path
    pickled = cloudpickle.dumps(module.twice)
    del sys.modules["revenue"]
    assert cloudpickle.loads(pickled)(3) == 6
