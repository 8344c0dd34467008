#!/usr/bin/env bash
# Chromium (the trigger form) and Redis (Celery) come from Debian's packages when root may install them; else from PATH.
# Without them only the tests that need them are skipped, and they say so.
set -euo pipefail

missing=()
[ -n "$(command -v chromium || command -v google-chrome || true)" ] || missing+=(chromium)
[ -n "$(command -v redis-server || true)" ] || missing+=(redis-server)
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "not on PATH, and not installed since that takes root on Debian: ${missing[*]}; tests that need them are skipped" >&2
    exit 0
fi
echo "installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
# A service started by the package would hold a port and outlive the tests: policy-rc.d forbids it while installing.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
install() { apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; }
install || { apt-get update -qq >/dev/null && install; } ||
    echo "could not be installed: ${missing[*]}; tests that need them are skipped" >&2
