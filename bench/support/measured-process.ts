import { monitorEventLoopDelay } from 'node:perf_hooks';

/** How often it is looked whether the event loop runs: rarely enough to cost nothing beside a request. */
const STALL_RESOLUTION_MS = 10;

/** What a server under measurement tells the bench about itself. */
export interface Usage {
  /** User and system time of the whole process, all its threads. */
  cpuUs: number;
  rssBytes: number;
  /** How long the event loop stood still at most since the question before, in milliseconds. */
  longestStallMs: number;
}

export interface Ready<Info> {
  ready: Info;
}

const stalls = monitorEventLoopDelay({ resolution: STALL_RESOLUTION_MS });

/** Answers the bench, in the process of a server; ends with the bench. */
export function answerBench<Info>(info: Info): void {
  process.on('message', (question) => {
    if (question === 'collect garbage') globalThis.gc?.();
    // Watching costs a wake-up each time: a server that is not asked for stalls is not watched.
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
