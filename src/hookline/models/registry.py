"""The models by name: `provider:model`, such as `scripted:turns.toml`, or a provider alone.

    models = Models()
    model = models.get("scripted:turns.toml")

A provider makes models from what follows the colon. More of them are plugged in with `register`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hookline.errors import BadSetting, ModelError, ModelUnavailable, UnknownModel
from hookline.hooks.errors import HooklineError

from .model import Model

if TYPE_CHECKING:
    from .weights import Progress

DEFAULT_MODEL = "local"
"""The model if nothing is configured."""


def _nothing_wrong(settings: Mapping[str, Any]) -> str:
    return ""


def _no_names() -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """A source of models.

    `make` gets what follows the colon (empty when there is none) and the provider's settings; it is
    cheap, a model loads when it is first used. `problem` gets the settings too; it says why the
    provider cannot be used here and what to do, or nothing. `names` lists full model names, to show
    and to suggest.
    """

    name: str
    make: Callable[[str, Mapping[str, Any]], Model]
    summary: str = ""
    problem: Callable[[Mapping[str, Any]], str] = _nothing_wrong
    names: Callable[[], list[str]] = _no_names
    obstacle: Callable[[Mapping[str, Any], str], str] | None = None
    """Asks a server of one's own whether it answers, and has the model if one is named."""


def provider_from(given: Any) -> ModelProvider:
    """A provider as a plugin gave it: a `ModelProvider`, or a mapping with its fields."""
    provider: Any = given
    if isinstance(given, Mapping):
        try:
            provider = ModelProvider(**cast("Mapping[str, Any]", given))
        except TypeError as error:
            raise BadSetting(f"a provider of models needs name and make: {error}") from None
    if not isinstance(provider, ModelProvider):
        raise BadSetting(f"register_models gives ModelProvider, not {given!r}")
    name: Any = provider.name
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name) or not callable(provider.make):
        raise BadSetting(
            f"a provider of models needs a name without colons and spaces, and a function that makes "
            f"models, not {given!r}"
        )
    return provider


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a model or provider can be used, and why not."""

    name: str
    summary: str
    usable: bool
    reason: str = ""
    default: bool = False

    def serves(self, model: str) -> bool:
        """Whether a model is this one, or one of this provider."""
        return self.name in (model, model.partition(":")[0])


class Models:
    """All models within reach. A model is made when it is first asked for, and kept.

    `settings` are given to providers by name: `{"local": {"offer_tools": True}}`. `progress` hears of
    weights that are fetched on first use.
    """

    def __init__(
        self,
        *,
        default: str = DEFAULT_MODEL,
        home: Path | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        progress: Progress | None = None,
        builtin: bool = True,
    ) -> None:
        self.default = default
        self._settings = dict(settings or {})
        self._providers: dict[str, ModelProvider] = {}
        self._models: dict[str, Model] = {}
        self._added: dict[str, Model] = {}
        if builtin:
            from .builtin import builtin_providers

            for provider in builtin_providers(home, progress):
                self.register(provider)

    @property
    def providers(self) -> list[str]:
        """The names of the providers."""
        return [*self._providers]

    def register(self, provider: ModelProvider) -> None:
        """Plug in a provider; a later one with the same name takes its place."""
        self._providers[provider.name] = provider

    def remove(self, provider: str) -> None:
        """Take a provider away, with the models that it made."""
        self._providers.pop(provider, None)
        for name in [name for name in self._models if name.partition(":")[0] == provider]:
            del self._models[name]

    def add(self, model: Model, name: str = "") -> None:
        """Make one ready model known, by its own name or another; it stays known when closed."""
        self._added[name or model.name] = model

    def get(self, name: str | None = None) -> Model:
        """The model of that name; without one, the default."""
        name = name or self.default
        model = self._added.get(name) or self._models.get(name)
        if model is None:
            model = self._models[name] = self._make(name)
        return model

    def available(self, ask: str | None = None) -> list[Availability]:
        """The usable models, and why the others are not.

        With `ask`, the model that is going to be used, local servers are asked too.
        """
        found = [
            Availability(name, "added by hand", True, default=name == self.default)
            for name in self._added
        ]
        for provider in self._providers.values():
            reason = self._problem_of(provider) or self._obstacle(provider, ask)
            found += [
                Availability(name, provider.summary, not reason, reason, name == self.default)
                for name in provider.names() or [provider.name]
            ]
        return found

    def _problem_of(self, provider: ModelProvider) -> str:
        try:
            return provider.problem(self._settings.get(provider.name, {}))
        except HooklineError as error:  # settings may refer to missing variables
            return str(error)

    def _obstacle(self, provider: ModelProvider, ask: str | None) -> str:
        if ask is None or provider.obstacle is None:
            return ""
        chosen, _, model = ask.partition(":")
        settings = self._settings.get(provider.name, {})
        return provider.obstacle(settings, model if chosen == provider.name else "")

    async def close(self) -> None:
        """Close every model that was made. A failure does not keep the others open."""
        models, self._models = [*self._models.values(), *self._added.values()], {}
        failures: list[Exception] = []
        for model in models:
            try:
                await model.close()
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _make(self, name: str) -> Model:
        prefix, _, rest = name.partition(":")
        provider = self._providers.get(prefix)
        if provider is None:
            raise UnknownModel(name, self._known(), self._path_hint(name) or self._name_hint(name))
        try:
            return provider.make(rest, self._settings.get(prefix, {}))
        except ModelError:
            raise
        except ImportError as error:
            raise ModelUnavailable(
                f"model {name!r} needs {error.name or error}, which is not installed"
            ) from error

    def _known(self) -> list[str]:
        names = dict.fromkeys([*self._models, *self._added])
        for provider in self._providers.values():
            names[provider.name] = None
            names.update((name, None) for name in provider.names())
        return list(names)

    def _name_hint(self, name: str) -> str:
        """The full name of a model whose provider is missing or misspelt."""
        from difflib import get_close_matches

        from .vendors import full_name

        found = full_name(name, self._providers)
        if found.partition(":")[0] not in self._providers:
            prefix, _, rest = name.partition(":")
            nearest = get_close_matches(prefix, self._providers, n=1, cutoff=0.7) if rest else []
            found = f"{nearest[0]}:{rest}" if nearest else ""
        return f"; did you mean {found!r}?" if found else ""

    def _path_hint(self, name: str) -> str:
        """A file given without its provider is the likeliest slip."""
        suffix = Path(name).suffix.lower()
        prefix = {".gguf": "local", ".toml": "scripted", ".py": "scripted"}.get(suffix)
        return f"; did you mean '{prefix}:{name}'?" if prefix in self._providers else ""
