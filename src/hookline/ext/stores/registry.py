"""`Stores`: the stores that there are, by name; each is opened when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, overload

from pydantic import ValidationError

from hookline.config.expand import expand
from hookline.hooks.errors import suggestion
from hookline.specs import StoreProtocol, StoreSpec
from hookline.tools.context import calling

from .access import Access, granted, offered
from .errors import StoreError, StoreMisconfigured, UnknownStore
from .protocols import DocStore, FactStore, GraphStore, MemoryStore, Store, VectorStore
from .provider import BUILTIN, Opening, StoreProvider
from .settings import check
from .view import StoreView

if TYPE_CHECKING:
    from hookline.runtime.app import Hookline

S = TypeVar("S", bound=Store)

_OWN = frozenset({"provider", "protocol", "capabilities"})  # keys of a table that are not settings

PROTOCOLS: dict[StoreProtocol, type[Any]] = {
    StoreProtocol.vector: VectorStore,
    StoreProtocol.graph: GraphStore,
    StoreProtocol.doc: DocStore,
    StoreProtocol.memory: MemoryStore,
    StoreProtocol.fact: FactStore,
}


@dataclass(frozen=True, slots=True)
class Binding:
    """A store that can be asked for: its spec, who brought it, and how it is opened."""

    spec: StoreSpec
    owner: str
    opening: Opening
    provider: StoreProvider
    offers: frozenset[Access]

    @property
    def file(self) -> str | None:
        """A file that only one process may open."""
        path = self.opening.path if self.provider.in_files else ":memory:"
        return None if path == ":memory:" else path

    def open(self) -> Store:
        """Make the store."""
        return self.provider.opens[self.spec.protocol](self.opening)


class Stores:
    """Stores by name: what plugins register and what the configuration says.

        stores = Stores(folder)
        stores.add([StoreSpec(name="notes", provider="sqlite", protocol="doc")], owner="me")
        notes = stores.get("notes", DocStore)

    Inside a tool call `get` gives a view with what the tool's permissions allow, `db.notes:read` and
    `db.notes:write`. `gather` adds the stores that there are; it is called when the first is looked up.
    """

    def __init__(
        self,
        folder: Path,
        *,
        providers: Iterable[StoreProvider] = BUILTIN,
        gather: Callable[[Stores], None] | None = None,
    ) -> None:
        self.folder = folder
        self._providers = {provider.name: provider for provider in providers}
        self._bindings: dict[str, Binding] = {}
        self._open: dict[str, Store] = {}
        self._gather = gather

    @classmethod
    def of(cls, app: Hookline) -> Self:
        """The stores of an app: those in its settings and those that plugins provide."""
        found = app.extensions.get(cls)
        if found is None:
            found = app.extensions[cls] = cls(app.home / "stores", gather=partial(_gather, app))
        return found

    def register(self, provider: StoreProvider) -> None:
        """Add a provider, before the stores that name it are looked up."""
        if self._providers.get(provider.name, provider) is not provider:
            raise StoreError(
                f"two store providers are named {provider.name!r}; give one of them another name"
            )
        self._providers[provider.name] = provider

    # --- what there is ---

    def add(self, specs: Iterable[StoreSpec], *, owner: str) -> None:
        """Add stores, all or none; nothing is opened yet."""
        added: dict[str, Binding] = {}
        for spec in specs:
            self._check_free(spec, owner, added)
            binding = self._bind(spec, owner)
            self._check_file(binding, added)
            added[spec.name] = binding
        self._bindings.update(added)

    def configure(self, section: Mapping[str, Any]) -> None:
        """Add the stores of a configuration: for each name its provider, protocol and settings."""
        specs = [self._spec(name, given) for name, given in section.items()]
        self.add(specs, owner="the configuration")

    def remove(self, names: Iterable[str]) -> None:
        """Take stores away; one that is open stays so until all are closed."""
        for name in names:
            self._bindings.pop(name, None)

    def gather(self) -> None:
        """Add what plugins and the configuration bring, once."""
        if self._gather is not None:
            gather, self._gather = self._gather, None  # the provider may itself ask for a store
            gather(self)

    def names(self) -> list[str]:
        """Every name, in order."""
        self.gather()
        return sorted(self._bindings)

    def binding(self, name: str) -> Binding:
        """The description of a store; an unknown name raises `UnknownStore` with the nearest names."""
        self.gather()
        if name not in self._bindings:
            raise UnknownStore(name, self._bindings)
        return self._bindings[name]

    # --- handing out ---

    @overload
    def get(self, name: str) -> Any: ...

    @overload
    def get(self, name: str, protocol: type[S]) -> S: ...

    def get(self, name: str, protocol: type[Any] | None = None) -> Any:
        """The store of that name; inside a tool call, limited to the tool's permissions.

        `protocol` names the protocol that it must support.
        """
        binding = self.binding(name)
        self._check_protocol(binding, protocol)
        call = calling()
        if call is None:
            return self._view(binding, binding.offers, "nobody was granted")
        who = f"the tool {call.tool!r} was not granted; list it in the tool's permissions"
        return self._view(binding, granted(name, call.permissions), who)

    def view(self, name: str, permissions: Iterable[str]) -> Any:
        """The store, limited to these permissions."""
        return self._view(self.binding(name), granted(name, permissions), "was not granted")

    def _view(self, binding: Binding, allowed: frozenset[Access], refusal: str) -> StoreView:
        name, offers = binding.spec.name, binding.offers
        if allowed - offers or allowed == offers:  # the store itself does not support it
            refusal = f"the store does not offer: see its capabilities, from {binding.owner}"
        protocol = PROTOCOLS[binding.spec.protocol]
        return StoreView(name, lambda: self._opened(name), protocol, allowed & offers, refusal)

    def _opened(self, name: str) -> Store:
        if name not in self._open:
            self._open[name] = self.binding(name).open()
        return self._open[name]

    async def close(self) -> None:
        """Close the open stores. A store opens again when it is next requested."""
        failed: list[Exception] = []
        while self._open:
            _, store = self._open.popitem()
            try:
                await store.close()
            except Exception as error:  # the others are closed all the same
                failed.append(error)
        if failed:
            raise failed[0]

    # --- checks ---

    def _spec(self, name: str, given: Any) -> StoreSpec:
        if not isinstance(given, Mapping):
            raise StoreMisconfigured(
                name, f"[stores.{name}] must be a table with provider and protocol, not {given!r}"
            )
        config: dict[str, Any] = dict(cast("Mapping[str, Any]", given))
        fields = {key: config.pop(key) for key in _OWN & config.keys()}
        provider = self._providers.get(str(fields.get("provider")))
        if "protocol" not in fields and provider is not None and len(provider.opens) == 1:
            fields["protocol"] = next(iter(provider.opens))
        try:
            return StoreSpec(name=name, config=config, **fields)
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise StoreMisconfigured(name, f"[stores.{name}] {wrong}") from None

    def _bind(self, spec: StoreSpec, owner: str) -> Binding:
        provider = self._providers.get(spec.provider)
        if provider is None:
            names = sorted(self._providers)
            there = suggestion(spec.provider, names) or f"; there are: {', '.join(names)}"
            raise StoreMisconfigured(spec.name, f"unknown provider {spec.provider!r}{there}")
        if spec.protocol not in provider.opens:
            speaks = ", ".join(sorted(provider.opens))
            others = [p.name for p in self._providers.values() if spec.protocol in p.opens]
            hint = f"; use {' or '.join(map(repr, others))}" if others else ""
            raise StoreMisconfigured(
                spec.name,
                f"the provider {provider.name!r} keeps {speaks}, not {spec.protocol.value}{hint}",
            )
        config = expand(spec.config, where=f"stores.{spec.name}")
        check(spec.name, config, spec.config_schema, owner)
        check(spec.name, config, provider.config_schema, f"the provider {provider.name!r}")
        opening = Opening(spec.name, spec.protocol, config, self.folder)
        offers = offered(spec.name, spec.capabilities)
        return Binding(spec, owner, opening, provider, offers)

    def _check_free(self, spec: StoreSpec, owner: str, added: Mapping[str, Binding]) -> None:
        present = self._bindings.get(spec.name) or added.get(spec.name)
        if present is not None:
            raise StoreError(
                f"two stores are named {spec.name!r}: one from {present.owner}, one from {owner}; "
                "give one of them another name"
            )

    def _check_file(self, binding: Binding, added: Mapping[str, Binding]) -> None:
        file = binding.file
        for other in (*self._bindings.values(), *added.values()):
            if file is not None and other.file == file:
                raise StoreError(
                    f"the stores {other.spec.name!r} from {other.owner} and {binding.spec.name!r} from "
                    f"{binding.owner} both want the file {file}; a file holds one store"
                )

    def _check_protocol(self, binding: Binding, protocol: type[Any] | None) -> None:
        speaks = PROTOCOLS[binding.spec.protocol]
        if protocol is not None and speaks is not protocol:
            raise StoreError(
                f"the store {binding.spec.name!r} from {binding.owner} is a {speaks.__name__}, "
                f"not a {protocol.__name__}"
            )


def _gather(app: Hookline, stores: Stores) -> None:
    """Add the stores of an app; a plugin whose stores cannot be added is left out."""
    stores.configure(app.config.section("stores"))
    app.plugins.gather(
        "register_stores",
        StoreSpec.model_validate,
        lambda spec: spec.name,
        "store",
        undo=lambda spec: stores.remove([spec.name]),
        take=lambda plugin, specs: stores.add(specs, owner=f"plugin {plugin!r}"),
    )
