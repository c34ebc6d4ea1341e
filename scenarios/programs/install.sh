#!/usr/bin/env bash
# Installs the packages that scenarios of this folder try, at fixed versions, into target/programs. It needs python3 with
# venv, node and npm; what is there already is left as it is.
set -euo pipefail
cd "$(dirname "$0")/../.."
place=$PWD/target/programs

if ! [[ -x $place/venv/bin/pip ]]; then
    python3 -m venv "$place/venv"
fi
"$place/venv/bin/pip" install --quiet --disable-pip-version-check \
    atomicwrites==1.4.1 crudini==0.9.6 pickledb==1.6 tinydb==4.9.0

if ! [[ -e $place/node_modules/lowdb && -e $place/node_modules/jsonfile ]]; then
    npm install --silent --no-audit --no-fund --no-save --prefix "$place" jsonfile@6.2.1 lowdb@7.0.1
fi
