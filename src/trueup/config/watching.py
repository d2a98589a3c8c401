"""What trueup.toml says of health and alerts: from when something is a condition, and who is told."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from trueup.config.values import DURATION, Duration, Names, Options, Zone
from trueup.model.alert_text import RUNBOOK


class HealthOptions(Options):
    """From when something is a condition: `[health]` for all pairs, `[pair.NAME.health]` for one."""

    overdue: Duration | None = Field(
        None,
        description="How late a run may start. By default as long as its interval, 5 minutes at least and an hour at "
        f"most. {DURATION}",
    )
    stuck: Duration | None = Field(None, description="How long a run may give no sign of life. By default `5m`.")
    run: Duration | None = Field(None, description="How long a run may take. By default `6h`.")
    trouble: Duration | None = Field(
        None, description="How long runs may fail, or a system be unreachable. By default `2m`."
    )
    few: float | None = Field(
        None, ge=0, le=1, description="The share of the usual number of records below which a side holds few: 0.5."
    )
    parked: int | None = Field(None, ge=0, description="From how many parked records on it is said. By default 1.")
    backlog: int | None = Field(None, ge=0, description="From how many waiting records on it is said: 10000.")
    pending: Duration | None = Field(
        None, description="How long a record may wait once it may be worked. By default `15m`."
    )
    drift: Duration | None = Field(None, description="How long a case may wait for a person. By default `7d`.")
    event: Duration | None = Field(None, description="How long no event may come. By default for ever.")
    paused: Duration | None = Field(None, description="How long a pause may last. By default `1h`.")
    budget: Duration | None = Field(
        None, description="How long calls may wait for a limit, and what is pending may take. By default `1h`."
    )
    clock: Duration | None = Field(None, description="How far clocks may be apart. By default `30s`.")
    growth: float | None = Field(
        None, ge=1, description="How many times as many rows as records the ledger may hold. By default 3."
    )
    deaths: int | None = Field(
        None, ge=0, description="How many workers may not die within `deaths_within`: 3. Only in `[health]`."
    )
    deaths_within: Duration | None = Field(None, description="Within this time. By default `30m`. Only in `[health]`.")
    state: Duration | None = Field(
        None, description="How long the state store may be away. By default `2m`. Only in `[health]`."
    )


class TargetOptions(Options):
    """Somebody who is told: `[alerts.target.NAME]`; `url` or `apprise`."""

    url: str | None = Field(None, description="A webhook of your own, to which each message is posted as JSON.")
    apprise: Names = Field(
        (), description="Addresses as [Apprise](https://github.com/caronc/apprise/wiki) writes them, as `${VARIABLE}`."
    )
    least: Literal["warning", "critical"] = Field("warning", description="From which severity on it is told.")
    secrets: Names = Field(
        (), description="What signs posts to `url`: base64, as `${VARIABLE}`; several while one is being changed."
    )
    timeout_s: float = Field(10.0, gt=0, description="Seconds for a call of `url`.")
    headers: dict[str, str] = Field({}, description="Headers of every call of `url`.")

    @model_validator(mode="after")
    def _one_way(self) -> TargetOptions:
        if (self.url is None) == (not self.apprise):
            raise ValueError("a target has either url or apprise")
        return self


class AlertsOptions(Options):
    """Who is told of conditions, and when: `[alerts]`."""

    every: Duration = Field("30s", description="Time between two looks at what is wrong.")
    group: Duration = Field(
        "10s", description="For so long what began is held back, so that what begins with it is told with it."
    )
    quiet: Names = Field((), description="When warnings wait: `22:00-07:00`, `Sat,Sun`. What is critical goes through.")
    zone: Zone = Field("UTC", description="The time zone of `quiet`.")
    name: str = Field("trueup", description="How messages name the project.")
    runbook: str = Field(RUNBOOK, description="Where the pages of the runbook are; messages link to them.")
    target: dict[str, TargetOptions] = Field(
        {}, description="Who is told, by name, each in a table `[alerts.target.NAME]`."
    )

    def declaration(self) -> dict[str, Any]:
        """The options of `Project.alerts`."""
        return self.model_dump(exclude={"target"})
