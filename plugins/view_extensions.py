"""Lists what the plug-ins of this distribution add to views; the commands and the HTTP interface pass it on."""

from __future__ import annotations

from xyro.plugins.bounded.bound_report import bound_status
from xyro.plugins.changes.change_report import change_status, stored_changes
from xyro.plugins.contents.contents_report import contents_status, stored_contents
from xyro.plugins.publish.promise_report import promise_status, stored_figures
from xyro.plugins.warehouse.warehouse_audit import check_repository
from xyro.service.views.extensions import ViewExtension

VIEW_EXTENSIONS = (
    ViewExtension(audit=check_repository),
    ViewExtension(status=promise_status, stored=stored_figures),
    ViewExtension(status=change_status, stored=stored_changes),
    ViewExtension(status=contents_status, stored=stored_contents),
    ViewExtension(status=bound_status),
)
"""xyro.plugins.warehouse; xyro.plugins.publish and clusters; xyro.plugins.changes; xyro.plugins.contents;
xyro.plugins.bounded.

Their fields appear in `xyro status` in this order."""
