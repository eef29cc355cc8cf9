"""The host's command line where `import vllm` finds the stub."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from lmms_eval_tasks.host.script import main

if __name__ == "__main__":
    main()
