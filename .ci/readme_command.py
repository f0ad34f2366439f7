"""Print one of the two commands of the README's first screen, exactly as it stands there.

Usage: readme_command.py plan|tests. The command is the fenced block that follows the marker `<!-- command: NAME -->`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

text = Path("README.md").read_text(encoding="utf-8")
found = re.search(rf"<!-- command: {re.escape(sys.argv[1])} -->\s*```sh\n(.*?)```", text, flags=re.DOTALL)
if found is None:
    sys.exit(f"README.md has no command {sys.argv[1]!r}")
if text[: found.start()].count("\n") > 40:
    sys.exit(f"the command {sys.argv[1]!r} is not on the README's first screen")
sys.stdout.write(found.group(1))
