# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the scripts image_oracles_*.py need: numpy, Pillow, torch and torchvision, of the versions that the values in
tests/image/oracles were made with. Others round otherwise, or draw other numbers."""

import os
import subprocess
import sys

VERSIONS = {"PIL": "9.4.", "torchvision": "0.14."}
SYSTEM = "/usr/bin/python3"
SKIPPED = 77


def trouble():
    """Why the values cannot be made here, and whether packages are missing; (None, False) if they can."""
    try:
        import numpy  # noqa: F401
        import PIL
        import torch  # noqa: F401
        import torchvision
    except ImportError as missing:
        return str(missing), True
    for package in (PIL, torchvision):
        wanted = VERSIONS[package.__name__]
        if not package.__version__.startswith(wanted):
            return (f"the values are those of {package.__name__} {wanted}x, and this is {package.__version__}", False)
    return None, False


def installable():
    """Whether apt has the packages."""
    try:
        names = ("python3-torchvision", "python3-pil")
        return all(subprocess.run(("apt-cache", "show", name), capture_output=True, check=False).returncode == 0
                   for name in names)
    except OSError:
        return False


def require(script):
    """Returns if the values can be made; runs the script again in the system's Python if they can only be made there.
    Otherwise ends the program and says why: a check is skipped, with status 77. In CI it fails if the packages are
    missing although the system has them; another version is no failure there either."""
    why, missing = trouble()
    if why is None:
        return
    if os.path.exists(SYSTEM) and (
            sys.prefix != sys.base_prefix or os.path.realpath(SYSTEM) != os.path.realpath(sys.executable)):
        os.execv(SYSTEM, [SYSTEM, *sys.argv])
    checks = "--check" in sys.argv[1:]
    fails = not checks or (missing and os.environ.get("CI") == "true" and installable())
    print(f"{script}: {'failed' if fails else 'skipped'}: {why}"
          f"{'; install python3-torchvision and python3-pil' if missing else ''}")
    sys.exit(1 if fails else SKIPPED)
