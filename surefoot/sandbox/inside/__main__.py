"""Entry point of a zygote: `python -s -P -S <this folder> FD` (no `-I`: that would ignore PYTHONHASHSEED)."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    # The interpreter put this folder itself first; the package is found through its parent.
    sys.path[:] = [str(HERE.parent), *(entry for entry in sys.path if Path(entry) != HERE)]
    from inside.zygote import main  # type: ignore[import-not-found]

    sys.path.pop(0)
    main(int(sys.argv[1]))
