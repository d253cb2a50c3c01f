# SPDX-License-Identifier: Apache-2.0
"""What people see: tables and pages made from the store's queries."""
