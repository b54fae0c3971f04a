"""The one exception that a user causes and can mend."""


class UserError(Exception):
    """Bad input: the message is one sentence that names the field, the value and the fix; the command line exits with 2."""
