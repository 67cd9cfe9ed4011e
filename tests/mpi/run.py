#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""run.py <processes> <program> <argument>...: the program under mpirun; fails where any process does."""

import sys

import launch

status, said = launch.run(int(sys.argv[1]), *sys.argv[2:])
print(said)
sys.exit(1 if status else 0)
