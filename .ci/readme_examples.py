"""Run every `console` block of the README and the docs: each `$ planner ...` line must end with the exit code its block promises.

A block may say another code than 0 in a comment line `# exit 3` before the command.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

failures = 0
count = 0
for path in [Path("README.md"), *sorted(Path("docs").rglob("*.md"))]:
    for block in re.findall(r"```console\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL):
        expected = 0
        for line in block.splitlines():
            if marked := re.fullmatch(r"# exit (\d+)", line):
                expected = int(marked.group(1))
            elif line.startswith("$ "):
                count += 1
                done = subprocess.run(shlex.split(line[2:]), capture_output=True, text=True, check=False)
                if done.returncode != expected:
                    failures += 1
                    sys.stderr.write(f"{path}: `{line[2:]}` ended with {done.returncode}, not {expected}\n{done.stderr}")
                expected = 0
sys.stdout.write(f"{count} examples, {failures} failures\n")
sys.exit(1 if failures or not count else 0)
