"""The cluster's metadata as a node sees it: what is committed, and those who follow it.

Watchers are told of each change before whoever asked for it gets the reply, so that a topic whose creation was
acknowledged can be used at once. Nothing here decides: the controller does, and publishes what came of it.
"""

from collections.abc import Callable, Iterable

from riverlog.metadata.delta import MetadataDelta, delta_between, delta_of
from riverlog.metadata.image import ConfigResource, ConfigResourceType, MetadataImage
from riverlog.metadata.records import MetadataRecord
from riverlog.model.resolution import topic_config, with_dynamic
from riverlog.model.settings import NodeSettings, TopicConfig
from riverlog.observe.containment import contained

MetadataWatcher = Callable[[MetadataDelta], None]


class MetadataView:
    """The newest committed image, and the settings that hold with it."""

    def __init__(self, settings: NodeSettings) -> None:
        self.image = MetadataImage()
        self.settings = settings
        """The node's settings as they are now, with what was set while it ran."""
        self._started_with = settings
        self._watchers: list[MetadataWatcher] = []

    def begin(self, image: MetadataImage) -> None:
        """Take over what was committed before this node started; nobody watches yet."""
        self.image = image
        self.settings = self._settings_now()

    def watch(self, watcher: MetadataWatcher) -> None:
        """Be told of every change from now on, in order, while it is the newest."""
        self._watchers.append(watcher)

    def topic_config(self, topic: str) -> TopicConfig:
        """Return the settings that hold for a topic."""
        return topic_config(self.image.topic_overrides(topic), self.settings.layers)

    def publish(self, image: MetadataImage, records: Iterable[MetadataRecord]) -> None:
        """Take over the image that these records lead to, and tell those who watch."""
        self._change(delta_of(self.image, image, records))

    def replace(self, image: MetadataImage) -> None:
        """Take over an image of which nobody knows the records that lead to it, and tell those who watch."""
        self._change(delta_between(self.image, image))

    def _change(self, delta: MetadataDelta) -> None:
        self.image = delta.image
        if delta.nodes_configured:
            self.settings = self._settings_now()
        for watcher in self._watchers:
            try:
                watcher(delta)
            except Exception as error:  # the others are to follow the metadata all the same
                contained("change of the metadata", error)

    def _settings_now(self) -> NodeSettings:
        node_id = str(self._started_with.node_id)
        return with_dynamic(
            self._started_with,
            node=self.image.config(ConfigResource(ConfigResourceType.BROKER, node_id)),
            cluster=self.image.config(ConfigResource(ConfigResourceType.BROKER, "")),
        )
