"""Configuration: files of the user, the profile and the project, the environment, the command line.

    config = Config.load(home, workspace=workspace)
    config.get("model")
    config.settings("limits", Limits)

Nothing is imported to read a configuration that is not there: TOML when a file is found, pydantic when
a section is checked, tomlkit when a file is written.
"""

from hookline.errors import ConfigError

from .config import Config
from .expand import expand
from .profile import Profile, profiles
from .secrets import is_secret, masked

__all__ = [
    "Config",
    "ConfigError",
    "Profile",
    "expand",
    "is_secret",
    "masked",
    "profiles",
]
