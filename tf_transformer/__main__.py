"""`python -m tf_transformer`: the command, where its script is not on the path."""

import sys

from tf_transformer.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
