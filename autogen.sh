#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes ./configure from a bare checkout.
set -eu
cd "$(dirname "$0")"
mkdir -p build-aux m4
exec autoreconf --install --force
