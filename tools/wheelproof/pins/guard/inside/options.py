"""Options of pip and uv, written by ci/update_guard_program.py from wheel_checks/data/install_commands.toml."""

PIP_VALUED = frozenset(
    """
    --abi --all-releases --build --build-constraint --cache-dir --cert --client-cert --config-setting --config-settings
    --constraint --default-timeout --dest --download --editable --exists-action --extra-index-url --find-links
    --global-option --group --implementation --index-url --install-option --keyring-provider --local-log --log
    --log-file --no-binary --only-binary --only-final --platform --prefix --progress-bar --proxy --pypi-url --python
    --python-version --refresh-package --report --requirement --requirements-from-script --resume-retries --retries
    --root --root-user-action --source --source-dir --source-directory --src --target --timeout --trusted-host
    --upgrade-strategy --uploaded-prior-to --use-deprecated --use-feature --wheel-dir -C -b -c -d -e -f -i -r -t -w
    """.split()
)
PIP_PLACES = frozenset(
    """
    --prefix --root --target -t
    """.split()
)
UV_VALUED = frozenset(
    """
    --allow-insecure-host --cache-dir --color --config-file --config-setting --config-settings --config-settings-package
    --default-index --directory --exclude-newer --exclude-newer-package --extra --extra-index-url --find-links
    --fork-strategy --group --index --index-strategy --index-url --keyring-provider --link-mode --no-binary-package
    --no-build-isolation-package --no-build-package --no-editable-package --no-sources-package --prerelease
    --prerelease-package --preview-features --project --python --python-fetch --python-platform --python-preference
    --refresh-package --reinstall-package --resolution --trusted-host --upgrade-group --upgrade-package -C -P -f -i -p
    """.split()
)
UV_PLACES = frozenset(
    """
    --prefix --target -t
    """.split()
)
UV_VENV_VALUED = frozenset(
    """
    --allow-insecure-host --cache-dir --color --config-file --config-setting --config-settings --config-settings-package
    --default-index --directory --exclude-newer --exclude-newer-package --extra --extra-index-url --find-links
    --fork-strategy --group --index --index-strategy --index-url --keyring-provider --link-mode --no-binary-package
    --no-build-isolation-package --no-build-package --no-editable-package --no-sources-package --prerelease
    --prerelease-package --preview-features --project --prompt --python --python-fetch --python-platform
    --python-preference --refresh-package --reinstall-package --resolution --trusted-host --upgrade-group
    --upgrade-package -C -P -f -i -p
    """.split()
)
UV_RUN_VALUED = frozenset(
    """
    --allow-insecure-host --cache-dir --color --config-file --config-setting --config-settings --config-settings-package
    --default-index --directory --env-file --exclude-newer --exclude-newer-package --extra --extra-index-url
    --find-links --fork-strategy --group --index --index-strategy --index-url --keyring-provider --link-mode
    --no-binary-package --no-build-isolation-package --no-build-package --no-editable-package --no-extra --no-group
    --no-install-package --no-sources-package --only-group --package --prerelease --prerelease-package
    --preview-features --project --python --python-fetch --python-platform --python-preference --refresh-package
    --reinstall-package --resolution --trusted-host --upgrade-group --upgrade-package --with --with-editable
    --with-requirements -C -P -f -i -p -w
    """.split()
)
UV_RUN_ONLY = frozenset(
    """
    --env-file --gui-script --isolated --module --no-env-file --no-project --no-sync --script --with --with-editable
    --with-requirements -m -s -w
    """.split()
)
UV_SHARED = frozenset(
    """
    --active --compile --compile-bytecode --managed-python --native-tls --no-build-isolation --no-cache --no-cache-dir
    --no-compile --no-config --no-index --no-managed-python --no-progress --no-python-downloads
    --no-require-build-hashes --offline --quiet --refresh --require-build-hashes --system-certs --verbose -n -q -qq -v
    -vv -vvv
    """.split()
)
UV_SHARED_VALUED = frozenset(
    """
    --allow-insecure-host --cache-dir --color --config-file --config-setting --config-settings --config-settings-package
    --default-index --directory --extra-index-url --find-links --index --index-strategy --index-url --keyring-provider
    --link-mode --no-build-isolation-package --project --python --python-fetch --python-preference --refresh-package
    --trusted-host -C -f -i -p
    """.split()
)
