"""The environment variables that matter to CUDA, torch, Triton and installers; no others, and no secrets."""

from collections.abc import Mapping

from wheel_checks.formats.secrets import is_secret_name, redact_text

NAMES = {
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES", "PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_OVERRIDE_CUDA", "CC", "CXX"),
    *("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HSA_OVERRIDE_GFX_VERSION"),
    *("ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR"),
    *("container", "KUBERNETES_SERVICE_HOST", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "WSL_DISTRO_NAME"),
}
PREFIXES: tuple[str, ...] = (
    "CUDA",
    "NVIDIA_",
    "NCCL_",
    "NVSHMEM_",
    "CUDNN_",
    "CUBLAS",
    "TRITON_",
    "TORCH",
    "PYTORCH_",
    "PYTHON",
)
PREFIXES += ("SLURM_", "UV_", "PIP_")
LONGEST = 4096  # characters of a value; a PATH has a few hundred
HIDDEN = "(hidden)"


def read_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Those of ``environ`` that matter, in order of their names; the values of secrets are replaced."""
    return {name: _shown(name, environ[name]) for name in sorted(environ) if matters(name)}


def matters(name: str) -> bool:
    """True for a variable that CUDA, torch, Triton, Python, pip, uv or a scheduler goes by."""
    return name in NAMES or name.startswith(PREFIXES)


def _shown(name: str, value: str) -> str:
    return HIDDEN if is_secret_name(name) else redact_text(value[:LONGEST])
