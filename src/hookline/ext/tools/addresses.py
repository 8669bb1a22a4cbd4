"""Addresses: which ones a fetch may reach."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from hookline.errors import ToolError

Address = IPv4Address | IPv6Address

_NAT64 = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))


class Reachable:
    """Public addresses, and the additional networks that the settings allow."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._networks = [ip_network(network) for network in allow]

    def resolve(self, host: str, port: int) -> list[str]:
        """The addresses of a host. If one of them is refused, all are: names can change their mind."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ToolError(f"the host {host!r} cannot be found: {why}") from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        for text in addresses:
            if not self.allows(ip_address(text)):
                raise ToolError(
                    f"{host} is at {text}, which is not a public address; those are refused"
                )
        return addresses

    def allows(self, address: Address) -> bool:
        """Whether an address, and the one that it may carry within, can be reached."""
        address = _within(address)
        if any(address in network for network in self._networks):
            return True
        return address.is_global and not address.is_multicast and not address.is_reserved


def _within(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, or the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour or address
    if address.teredo:
        return address.teredo[1]
    if any(isinstance(net, IPv6Network) and address in net for net in _NAT64):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address
