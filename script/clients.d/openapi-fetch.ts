// A scan through openapi-fetch with the types of openapi-typescript: order, wait, read every item.
import createClient from "openapi-fetch";
import type { paths } from "./description";

const [url, key, from, to] = process.argv.slice(2) as [string, string, string, string];
const client = createClient<paths>({ baseUrl: url, headers: { "x-api-key": key } });

const ordered = await client.POST("/v1/scans", {
  body: {
    endpoint: "flights/oneway",
    request: { from_airport: "TLV", to_airport: "LHR", currency: "USD" },
    sweep: { departure_date: { from, to } },
  },
});
if (!ordered.data) throw new Error(ordered.error.error.message);
let scan = ordered.data;
for (let wait = 0; wait < 10 && scan.finished_at === null; wait++) {
  const read = await client.GET("/v1/scans/{id}", { params: { path: { id: scan.id }, query: { wait: 30 } } });
  if (!read.data) throw new Error(read.error.error.message);
  scan = read.data;
}
const page = await client.GET("/v1/scans/{id}/items", { params: { path: { id: scan.id } } });
if (!page.data || typeof page.data !== "object" || !("next_cursor" in page.data)) throw new Error("no page of items");
if (page.data.data.length !== 3 || scan.items.total !== 3) throw new Error(JSON.stringify(scan));
console.log(`${page.data.data.length} items, best ${scan.best?.price} ${scan.best?.currency}`);
