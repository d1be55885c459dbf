// A scan through the client of @hey-api/openapi-ts: order, wait, read every item.
import { client } from "./client/client.gen";
import { createScan, getScan, listItems } from "./client/sdk.gen";

const [url, key, from, to] = process.argv.slice(2) as [string, string, string, string];
client.setConfig({ baseUrl: url, headers: { "x-api-key": key }, throwOnError: true });

const ordered = await createScan({
  throwOnError: true,
  body: {
    endpoint: "flights/oneway",
    request: { from_airport: "TLV", to_airport: "LHR", currency: "USD" },
    sweep: { departure_date: { from, to } },
  },
});
let scan = ordered.data;
for (let wait = 0; wait < 10 && scan.finished_at === null; wait++) {
  scan = (await getScan({ throwOnError: true, path: { id: scan.id }, query: { wait: 30 } })).data;
}
const answer = await listItems({ throwOnError: true, path: { id: scan.id } });
const page = answer.data;
if (typeof page === "string" || !("data" in page)) throw new Error("no page of items");
if (page.data.length !== 3 || scan.items.total !== 3) throw new Error(JSON.stringify(scan));
console.log(`${page.data.length} items, best ${scan.best?.price} ${scan.best?.currency}`);
