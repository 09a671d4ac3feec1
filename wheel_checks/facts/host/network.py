"""The network of a host beyond Ethernet: InfiniBand and RoCE adapters."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InfiniBandPort:
    """A port of an ``adapter`` ("mlx5_0"): ``state`` is ACTIVE, DOWN, INIT or ARMED, ``rate`` what the kernel says of
    the link ("400 Gb/sec (4X NDR)"), ``layer`` InfiniBand or Ethernet, ``firmware`` its version ("28.39.1002"),
    ``board`` the PSID ("MT_0000000838"). What cannot be read is "".
    """

    adapter: str
    port: int
    state: str = ""
    rate: str = ""
    layer: str = ""
    firmware: str = ""
    board: str = ""
