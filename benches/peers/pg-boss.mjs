// pg-boss by its `fetch` and `complete`: `work` waits for a whole batch before it fetches the next. Completions are sent
// in batches of those that ended meanwhile.

import PgBoss from 'pg-boss'

const QUEUE = 'search'

export async function open ({ databaseUrl, calls, search, done }) {
  const boss = new PgBoss({ connectionString: databaseUrl, max: 20, supervise: false, schedule: false })
  boss.on('error', error => { throw error })
  await boss.start()
  await boss.createQueue(QUEUE)
  let running = 0
  let ended = []
  let isStopped = true
  let wake = () => {}

  async function fetchJobs () {
    while (!isStopped) {
      const free = calls - running
      // As many as a claim of farescan has at most; fewer at a time cost more queries.
      const jobs = free >= 20 ? await boss.fetch(QUEUE, { batchSize: Math.min(free, 100) }) : []
      for (const job of jobs) {
        running += 1
        search(job.data).then(() => {
          running -= 1
          ended.push(job.id)
          wake()
        })
      }
      if (jobs.length === 0) await new Promise(resolve => { wake = resolve; setTimeout(resolve, 5) })
    }
  }

  async function completeJobs () {
    while (!isStopped) {
      const ids = ended
      ended = []
      if (ids.length > 0) {
        await boss.complete(QUEUE, ids)
        done(ids.length)
      } else {
        await new Promise(resolve => setTimeout(resolve, 5))
      }
    }
  }

  return {
    async fill (jobs) {
      for (let at = 0; at < jobs.length; at += 1000) {
        await boss.insert(jobs.slice(at, at + 1000).map(data => ({ name: QUEUE, data })))
      }
    },
    async start () {
      isStopped = false
      fetchJobs()
      completeJobs()
    },
    async stop () { isStopped = true }
  }
}
