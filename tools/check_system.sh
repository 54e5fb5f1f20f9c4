#!/bin/sh
# Says in one line which system packages the Makefile needs and this machine lacks; prints nothing if all are there.
# Usage: check_system.sh PYTHON   (the interpreter that `make` found, or an empty string)
set -eu
python=$1
missing=""

if [ -z "$python" ] || ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    missing="python3.11 python3.11-venv python3.11-dev"
else
    # Debian splits both of these off the interpreter; python3.11 itself may be installed under the name python3.
    package="python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
    "$python" -c 'import ensurepip, venv' 2>/dev/null || missing="$missing $package-venv"
    "$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
        missing="$missing $package-dev"
fi
command -v g++ >/dev/null || missing="$missing g++"

if [ -n "$missing" ]; then
    # Word splitting drops the leading blank.
    # shellcheck disable=SC2086
    set -- $missing
    echo "draftd: missing system package(s): $* (on Debian: apt-get install $*)" >&2
    exit 1
fi
