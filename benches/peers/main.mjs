// A queue of another project does what a scan does: for each job one search at the marketplace, and its answer in a
// table of the same Postgres. Commands come by standard input, a line each:
//   fill COUNT   adds jobs, answers "filled"
//   start        works until all jobs are done, answers "done" if each of them has stored one answer
//
//   node main.mjs graphile-worker|pg-boss DATABASE_URL MARKETPLACE_URL CALLS_IN_FLIGHT

import { createInterface } from 'node:readline'
import pg from 'pg'
import { Pool } from 'undici'

const [queueName, databaseUrl, marketplaceUrl, inFlight] = process.argv.slice(2)
const calls = Number(inFlight)
const marketplace = new Pool(marketplaceUrl, { connections: calls })
const database = new pg.Pool({ connectionString: databaseUrl, max: 20 })

await database.query(`create table if not exists results (
    item bigint generated always as identity primary key, date text not null, price numeric, answer jsonb not null,
    observed_at timestamptz not null default now())`)

let left = 0
let expected = 0
let allDone = () => {}

/** One job: the search, the best price, a row. */
async function search ({ date }) {
  const { statusCode, body } = await marketplace.request({
    path: '/api/google_flights/oneway/v1',
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-marketplace-key': 'bench-caller-peer' },
    body: JSON.stringify({ from_airport: 'TLV', to_airport: 'LHR', departure_date: date, limit: 50 })
  })
  const text = await body.text()
  if (statusCode !== 200) throw new Error(`status ${statusCode}`)
  const price = Math.min(...JSON.parse(text).map(fare => fare.price_as_number))
  await database.query('insert into results (date, price, answer) values ($1, $2, $3)', [date, price, text])
}

/** Called when a job is done and the queue has recorded that. */
function done (count = 1) {
  left -= count
  if (left === 0) allDone()
}

const { open } = await import(`./${queueName}.mjs`)
const queue = await open({ databaseUrl, calls, search, done })

for await (const line of createInterface({ input: process.stdin })) {
  const [command, count] = line.split(' ')
  if (command === 'fill') {
    left = Number(count)
    expected += left
    const jobs = Array.from({ length: left }, (_, day) => ({ date: new Date(Date.UTC(2027, 0, 1 + day % 300)).toISOString().slice(0, 10) }))
    await queue.fill(jobs)
    console.log('filled')
  } else if (command === 'start') {
    const finished = new Promise(resolve => { allDone = resolve })
    await queue.start()
    await finished
    const { rows: [{ stored }] } = await database.query('select count(*)::int as stored from results')
    console.log(stored === expected ? 'done' : `${stored} answers of ${expected}`)
    await queue.stop()
  }
}
process.exit(0)
