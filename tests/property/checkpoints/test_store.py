"""The store against a dict: any operations, restarts at any point, compaction, uploads that end half-way."""

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from riverlog.checkpoints.files.paths import is_below
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.files.tree import StoredFile
from riverlog.checkpoints.limits import CHECKPOINT_CHUNK_BYTES, CHECKPOINT_INLINE_BYTES_MAX
from riverlog.checkpoints.store import Store
from tests.support.checkpoints import MemoryTopic, opened, put, read
from tests.support.virtual_time import VirtualTimeLoop

FOLDERS = ["/p", "/p/offsets", "/p/state/0"]
KEPT = ["/p/offsets/1", "/p/offsets/2", "/p/state/0/a.sst", "/p/state"]
TEMPORARY = ["/p/offsets/.1.x.tmp", "/p/offsets/.2.y.tmp", "/p/state/0/.3.tmp"]
PATHS = st.sampled_from([*KEPT, *TEMPORARY])
ANY = st.sampled_from([*FOLDERS, *KEPT, *TEMPORARY])
CONTENTS = st.builds(
    lambda letter, size: bytes([letter]) * size,
    st.integers(97, 99),
    st.sampled_from(
        [0, 1, CHECKPOINT_INLINE_BYTES_MAX, CHECKPOINT_INLINE_BYTES_MAX + 1, CHECKPOINT_CHUNK_BYTES, 1_200_000]
    ),
)


class StoreAndDict(RuleBasedStateMachine):
    """What the store has is what the dict has, temporary files and restarts included."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.topic = MemoryTopic()
        self.files: dict[str, bytes] = {}
        self.made: set[str] = set()
        self.renamed: dict[str, str] = {}
        """Where each file that was renamed came from."""
        self.store: Store

    @initialize()
    def begin(self) -> None:
        self.store = self.runner.run(opened(self.topic))

    def teardown(self) -> None:
        self.runner.run(self.store.close())
        self.runner.close()

    # What the dict says

    def is_folder(self, path: str) -> bool:
        return path in self.made or any(is_below(each, path) for each in [*self.files, *self.made])

    def is_blocked(self, path: str) -> bool:
        return any(is_below(path, each) for each in self.files)

    def can_create(self, path: str, *, overwrite: bool) -> bool:
        return not self.is_blocked(path) and not self.is_folder(path) and (overwrite or path not in self.files)

    def forget(self, path: str) -> None:
        self.files.pop(path, None)
        self.renamed.pop(path, None)

    # What is done

    @rule(path=PATHS, content=CONTENTS, overwrite=st.booleans())
    def create(self, path: str, content: bytes, overwrite: bool) -> None:
        possible = self.can_create(path, overwrite=overwrite)
        try:
            self.runner.run(put(self.store, path, content, overwrite=overwrite))
        except RequestRefused:
            assert not possible
        else:
            assert possible
            self.forget(path)
            self.files[path] = content

    @rule(path=PATHS, content=CONTENTS, crash=st.booleans())
    def create_half(self, path: str, content: bytes, crash: bool) -> None:
        if not self.can_create(path, overwrite=True):
            return
        upload = self.store.upload(path, overwrite=True, user="")
        self.runner.run(upload.write(content))
        if crash:
            self.restart()
        else:
            self.runner.run(upload.discard())

    @rule(source=PATHS, destination=ANY, overwrite=st.booleans())
    def rename(self, source: str, destination: str, overwrite: bool) -> None:
        again = self.renamed.get(destination) == source
        possible = again or (
            source in TEMPORARY
            and source in self.files
            and destination not in TEMPORARY
            and self.can_create(destination, overwrite=overwrite)
        )
        try:
            self.runner.run(self.store.rename(source, destination, overwrite=overwrite))
        except RequestRefused:
            assert not possible
            return
        assert possible
        if not again:
            self.files[destination] = self.files.pop(source)
            self.renamed[destination] = source

    @rule(path=ANY, recursive=st.booleans())
    def delete(self, path: str, recursive: bool) -> None:
        below = [each for each in [*self.files, *self.made] if is_below(each, path)]
        there = path in self.files or self.is_folder(path)
        try:
            assert self.runner.run(self.store.delete(path, recursive=recursive)) is there
        except RequestRefused:
            assert below
            assert not recursive
            return
        for each in [path, *below]:
            self.forget(each)
            self.made.discard(each)

    @rule(path=st.sampled_from([*FOLDERS, *KEPT]))
    def make_folder(self, path: str) -> None:
        possible = path not in self.files and not self.is_blocked(path)
        try:
            self.runner.run(self.store.make_folder(path))
        except RequestRefused:
            assert not possible
        else:
            assert possible
            self.made.add(path)

    @rule()
    def restart(self) -> None:
        """The process ends; another one reads the topic."""
        self.store = self.runner.run(opened(self.topic))
        assert self.store.storage.tree.uploads == {}
        assert self.topic.chunk_owners() == self.owners()

    @rule()
    def compact(self) -> None:
        self.topic.compact()

    # What must hold

    def owners(self) -> set[str]:
        return {
            found.facts.id
            for _, found in self.store.storage.tree.walk()
            if isinstance(found, StoredFile) and found.facts.chunks
        }

    @invariant()
    def they_agree(self) -> None:
        found = dict(self.store.storage.tree.walk())
        files = [path for path, each in found.items() if isinstance(each, StoredFile)]
        assert {path: self.runner.run(read(self.store, path)) for path in files} == self.files
        for path in [*FOLDERS, *KEPT]:
            assert (path in found and path not in files) is self.is_folder(path)
        assert self.store.storage.tree.entries == len(found) - 1
        assert self.topic.chunk_owners() == self.owners()

    @invariant()
    def memory_is_counted(self) -> None:
        held = sum(len(each.content) for _, each in self.store.storage.tree.walk() if isinstance(each, StoredFile))
        assert self.store.storage.tree.temporaries.bytes == held


TestStoreAndDict = StoreAndDict.TestCase
TestStoreAndDict.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
