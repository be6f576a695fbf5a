"""What models cost: `models.providers.<id>.models[].cost`, in the currency for a million tokens of each kind. Pure."""

from collections.abc import Iterator, Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

import msgspec

from intersession_actors.rules.config.host import Models
from intersession_events.basics.plain_json import JsonValue, is_list, is_object
from intersession_events.facts import ready


@ready
class Price(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The price of a million tokens of each kind. What else a file says of it is not read."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    cache_read: Decimal = Decimal(0)
    cache_write: Decimal = Decimal(0)

    def micros(self, input_: int, output: int, cache_read: int, cache_write: int) -> Decimal:
        """Return the price of some tokens in millionths of the currency, exactly."""
        return (
            input_ * self.input
            + output * self.output
            + cache_read * self.cache_read
            + cache_write * self.cache_write
        )


def prices_of(models: Models) -> Mapping[str, Price]:
    """Return the price of each model that has one, by its id and by `provider/id`, as either may be on record.

    A model that two providers have at two prices has one by its provider alone.
    """
    found: dict[str, Price] = {}
    plain: dict[str, list[Price]] = {}
    for provider, settings in models.providers.items():
        for _, name, cost in costs_in(settings):
            price = price_in(cost)
            found[f"{provider}/{name}"] = price
            plain.setdefault(name, []).append(price)
    return {name: prices[0] for name, prices in plain.items() if len({*prices}) == 1} | found


def costs_in(provider: JsonValue) -> Iterator[tuple[int, str, JsonValue]]:
    """Yield of each model of a provider that has a cost its number, its id and the cost, as they are configured."""
    models = provider.get("models") if is_object(provider) else None
    for number, model in enumerate(models if is_list(models) else ()):
        if is_object(model) and "cost" in model and isinstance(name := model.get("id"), str):
            yield number, name, model["cost"]


def price_in(given: JsonValue) -> Price:
    """Return a price as it is configured.

    Raises:
        ValueError: a field is not a number, is negative, or too large.
    """
    try:
        price = msgspec.convert(_as_written(given), Price, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    for name in Price.__struct_fields__:
        value: Decimal = getattr(price, name)
        if not value.is_finite() or value < 0 or value > _MOST:
            raise ValueError(f"{name} is {value}, give what a million tokens cost, 0 to {_MOST}")
    return price


def _as_written(given: JsonValue) -> object:
    """Return the numbers as texts: 0.1 is a tenth then, and not the nearest binary fraction."""
    if not is_object(given):
        return given
    return {
        name: repr(value) if isinstance(value, float | int) and not isinstance(value, bool) else value
        for name, value in given.items()
    }


def whole(micros: Decimal) -> int:
    """Return an amount in whole millionths."""
    return int(micros.to_integral_value(ROUND_HALF_EVEN))


_MOST: Final = 1_000_000
