"""Who plays which role: endpoints for the roles of a configuration, and Python functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from snellen.construction.config import BuildConfig
from snellen.construction.embeddings import EmbeddingsCaller
from snellen.construction.stages import Seat
from snellen.endpoints.bind import Binding, bind_endpoint
from snellen.endpoints.http import CallableModel, Caller, ChatClient, Function
from snellen.errors import UsageError
from snellen.records import JsonObject
from snellen.settings import Endpoint, EndpointOptions, Settings, endpoint_of

Player = Function


@dataclass(frozen=True, slots=True)
class Cast:
    """The models of all roles: `seats` name them, `bindings` say how each is called."""

    seats: Mapping[str, tuple[Seat, ...]]
    bindings: Mapping[str, Binding]

    def require(self, role: str, stage: str) -> None:
        """Complains unless somebody plays a role.

        Raises:
            UsageError: nobody does.
        """
        if not self.seats.get(role):
            raise UsageError(
                f"stage `{stage}` needs the role `{role}`, and no model is named for it",
                hint=f"add [roles.{role}] with model and url to build.toml",
            )

    def identity(self, role: str) -> list[object]:
        """What tells the models of a role from others: their names and the parameters sent."""
        bound = [self.bindings[seat.role] for seat in self.seats.get(role, ())]
        return [[one.endpoint.model, dict(one.params)] for one in bound]

    def record(self, role: str) -> list[JsonObject]:
        """The models of a role as they stand in `build.json`; never a key."""
        return [
            {"name": seat.label, "model": end.model, "url": end.url, "params": dict(end.params)}
            for seat in self.seats[role]
            for end in [self.bindings[seat.role].endpoint]
        ]


def cast(
    config: BuildConfig,
    *,
    players: Mapping[str, Player | tuple[Player, ...]] | None = None,
    concurrency: int | None = None,
    embedding_roles: Sequence[str] = (),
) -> Cast:
    """The models of a configuration; `players` are Python functions that play a role instead.

    The endpoints of `embedding_roles` embed texts; all others chat.

    Raises:
        SettingsError: a role has no address, or its key is not set.
    """
    seats: dict[str, tuple[Seat, ...]] = {}
    bindings: dict[str, Binding] = {}
    for role, tables in config.roles.items():
        labels = [table.label for table in tables]
        seats[role] = tuple(Seat(f"{role}/{label}", label) for label in labels)
        for seat, table in zip(seats[role], tables, strict=True):
            options = EndpointOptions(seat.label, concurrency=concurrency)
            named = endpoint_of(options, Settings({seat.label: table.settings}))
            binding = bind_endpoint(named)
            if role in embedding_roles and isinstance(binding.caller, ChatClient):
                binding = replace(binding, caller=EmbeddingsCaller(binding.caller))
            bindings[seat.role] = binding
    for role, given in (players or {}).items():
        functions = given if isinstance(given, tuple) else (given,)
        names = [getattr(one, "__name__", type(one).__name__) for one in functions]
        seats[role] = tuple(Seat(f"{role}/{name}", name) for name in names)
        for seat, function in zip(seats[role], functions, strict=True):
            end = Endpoint(
                seat.label, f"python:{seat.role}", seat.label, price_in_usd=0, price_out_usd=0
            )
            caller: Caller = CallableModel(function)
            bindings[seat.role] = Binding(caller, end, cacheable=False)
    return Cast(seats, bindings)


def check_prices(cast_: Cast) -> None:
    """A budget is only kept where every endpoint's prices are known.

    Raises:
        UsageError: an endpoint has no price.
    """
    for binding in cast_.bindings.values():
        end = binding.endpoint
        if end.price_in_usd is None or end.price_out_usd is None:
            raise UsageError(
                f"--max-cost needs the prices of {end.name}",
                hint="set price_in_usd and price_out_usd in its table; 0 for one that is free",
            )
