"""The logger of this package."""

from __future__ import annotations

import logging

logger = logging.getLogger("cobre_comm")
