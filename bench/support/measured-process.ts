import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Interval between checks of the event loop: rare enough to cost nothing compared with a request. */
const STALL_RESOLUTION_MS = 10;

/** What a measured server reports about itself. */
export interface Usage {
  /** User and system time of the whole process, all its threads. */
  cpuUs: number;
  rssBytes: number;
  /** Longest stall of the event loop since the previous report, in milliseconds. */
  longestStallMs: number;
}

export interface Ready<Info> {
  ready: Info;
}

const stalls = monitorEventLoopDelay({ resolution: STALL_RESOLUTION_MS });

/** Answers the bench from a server's process, and exits with the bench. */
export function answerBench<Info>(info: Info): void {
  process.on('message', (question) => {
    if (question === 'collect garbage') globalThis.gc?.();
    // Monitoring costs a wake-up each time, so it runs only on request.
    if (question === 'watch stalls') stalls.enable();
    process.send?.(usage());
  });
  process.on('disconnect', () => process.exit());
  process.send?.({ ready: info } satisfies Ready<Info>);
}

function usage(): Usage {
  const { user, system } = process.cpuUsage();
  const longestStallMs = Math.max(0, stalls.max / 1e6 - STALL_RESOLUTION_MS);
  stalls.reset();
  return { cpuUs: user + system, rssBytes: process.memoryUsage.rss(), longestStallMs };
}
