"""The two ways in which a command ends early with a sentence instead of a traceback."""


class UserError(Exception):
    """Bad input: the message is one sentence that names the field, the value and the fix; the command line exits with 2."""


class RunStopped(Exception):
    """A guard stopped a run: the message says what is wrong and what to do; the last checkpoint stands; exit code 1."""
