// graphile-worker as its documentation advises for throughput: a local queue, and completions in batches.

import { Logger, makeWorkerUtils, run } from 'graphile-worker'

// It logs each job.
const logger = new Logger(() => () => {})

export async function open ({ databaseUrl, calls, search, done }) {
  const utils = await makeWorkerUtils({ connectionString: databaseUrl, logger })
  await utils.migrate()
  let runner
  return {
    async fill (jobs) {
      for (let at = 0; at < jobs.length; at += 1000) {
        await utils.addJobs(jobs.slice(at, at + 1000).map(payload => ({ identifier: 'search', payload })))
      }
    },
    async start () {
      runner = await run({
        connectionString: databaseUrl,
        noHandleSignals: true,
        taskList: { search: job => search(job) },
        preset: {
          worker: {
            concurrentJobs: calls,
            maxPoolSize: 20,
            localQueue: { size: 2 * calls },
            completeJobBatchDelay: 1,
            failJobBatchDelay: 1
          }
        },
        logger
      })
      runner.events.on('job:complete', () => done())
    },
    stop: () => runner.stop()
  }
}
