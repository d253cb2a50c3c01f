# SPDX-License-Identifier: Apache-2.0
"""Property tests have no time limit per example: the machine is shared."""

from hypothesis import settings

settings.register_profile("starloop", deadline=None)
settings.load_profile("starloop")
