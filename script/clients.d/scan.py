"""A scan through the client of openapi-python-client: order, wait, read every item."""

import sys

from farescan_client import AuthenticatedClient
from farescan_client.api.scans import create_scan, get_scan, list_items
from farescan_client.models import DateRange, ScanRequest, ScanRequestEndpoint, SearchFields, Sweep
from datetime import date

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2], prefix="", auth_header_name="x-api-key")
order = ScanRequest(
    endpoint=ScanRequestEndpoint.FLIGHTSONEWAY,
    request=SearchFields(from_airport="TLV", to_airport="LHR", currency="USD"),
    sweep=Sweep(departure_date=DateRange(from_=date.fromisoformat(sys.argv[3]), to=date.fromisoformat(sys.argv[4]))),
)
scan = create_scan.sync(client=client, body=order)
for _ in range(10):
    scan = get_scan.sync(id=scan.id, client=client, wait=30)
    if scan.finished_at is not None:
        break
items = list_items.sync(id=scan.id, client=client).data
assert len(items) == scan.items.total == 3, scan
assert all(item.search.departure_date is not None for item in items)
print(f"{len(items)} items, best {scan.best.price} {scan.best.currency}")
