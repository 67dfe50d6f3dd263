"""The flow of one item under the protocol of its options."""

from snellen.flows import Flow
from snellen.protocols import Options, protocol_of_options
from snellen.records import Item, Outcome


def flow(item: Item, options: Options, repeat: int = 0) -> Flow[Outcome]:
    return protocol_of_options(options).flow(item, options, repeat)
