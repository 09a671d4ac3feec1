"""What the health mask of a GPU's NVLink fabric says, by the table ``wheel_checks/data/fabric_health.toml``."""

from collections.abc import Iterator

from wheel_checks.data import load


def fabric_faults(mask: int | None, summary: int | None = None) -> tuple[str, ...]:
    """The faults that a health mask names ("bandwidth: degraded"); none where it reports none.

    ``summary`` is the one value that NVML 13 adds; it counts where no field of the mask names a fault.
    """
    found = tuple(_of_fields(mask)) if mask is not None else ()
    text = load("fabric_health")["summary"]["faults"].get(str(summary))
    return found or ((f"fabric: {text}",) if text else ())


def _of_fields(mask: int) -> Iterator[str]:
    for field in load("fabric_health")["field"]:
        value = mask >> field["shift"] & (1 << field["width"]) - 1
        if text := field["faults"].get(str(value)):
            yield f"{field['name']}: {text}"
