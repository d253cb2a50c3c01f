# SPDX-License-Identifier: Apache-2.0
"""`jsonl`: rows of any make; a column named like a field is that field, `--map` names others."""

from stages.imports.columns import FIELDS, Columns

FORMAT = Columns(name="jsonl", defaults={name: name for names in FIELDS.values() for name in names})
