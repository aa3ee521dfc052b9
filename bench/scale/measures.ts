import { FLAT, LINEAR, type Measure } from './measure.ts';

const BOTH = ['sqlite', 'postgres'] as const;
const SQLITE = ['sqlite'] as const;

/** Every row of the table. */
export const measures: readonly Measure[] = [
  {
    id: 'open-orchestrator',
    what: '`berth serve`',
    of: 'tombstones',
    n: { full: 100_000, quick: 10_000 },
    rounds: { full: 5, quick: 2 },
    on: BOTH,
    load: () => import('./subjects/open-orchestrator.ts'),
    figures: {
      cpuMs: { what: 'CPU, all modules loaded', unit: 'ms', mayGrow: FLAT },
      startMs: { what: 'a start to the first 200', unit: 'ms', mayGrow: null, aim: { atMost: 1000 } },
      killedMs: { what: 'the same after a kill', unit: 'ms', mayGrow: null },
    },
  },
  {
    id: 'open-marketplace',
    what: 'opening the books',
    of: 'slices',
    n: { full: 100_000, quick: 10_000 },
    on: BOTH,
    load: () => import('./subjects/open-marketplace.ts'),
    figures: {
      cpuMs: { what: 'CPU', unit: 'ms', mayGrow: FLAT },
      ms: { what: 'until it serves', unit: 'ms', mayGrow: null, aim: { atMost: 600 } },
      commandMs: { what: 'CPU of a command', unit: 'ms', mayGrow: FLAT },
    },
  },
  {
    id: 'verify',
    what: '`verify-ledger`',
    of: 'slices',
    n: { full: 100_000, quick: 10_000 },
    rounds: { full: 2, quick: 2 },
    on: BOTH,
    load: () => import('./subjects/verify-ledger.ts'),
    figures: {
      secondsAMillion: { what: 'CPU for a million', unit: 's', mayGrow: FLAT, aim: { atMost: 8 } },
    },
  },
  {
    id: 'claim',
    what: 'one piece of durable work',
    of: 'that wait',
    n: { full: 10_000, quick: 2_000 },
    on: BOTH,
    load: () => import('./subjects/claim-work.ts'),
    figures: {
      cpuMs: { what: 'CPU to write, claim and finish it', unit: 'ms', mayGrow: FLAT },
    },
  },
  {
    id: 'lifetime',
    what: 'create, ONLINE, delete, gone',
    of: 'others',
    n: { full: 500, quick: 200 },
    rounds: { full: 5, quick: 1 },
    on: BOTH,
    load: () => import('./subjects/lifetimes.ts'),
    figures: {
      cpuMs: { what: 'CPU', unit: 'ms', mayGrow: FLAT, aim: { atMost: 5 } },
      berthCpuMs: { what: 'CPU without PostgreSQL', unit: 'ms', mayGrow: FLAT },
      fsyncs: { what: 'fsyncs', unit: '', mayGrow: FLAT, aim: { atMost: 4 } },
      perSecond: { what: 'a second', unit: '', of: 'most', mayGrow: null, aim: { atLeast: 120 } },
    },
  },
  {
    id: 'polls',
    what: '500 polls a second',
    of: 'instances',
    n: { full: 500, quick: 500 },
    rounds: { full: 3, quick: 1 },
    on: SQLITE,
    load: () => import('./subjects/polls.ts'),
    figures: {
      pollUs: { what: 'CPU of one, with all else', unit: 'µs', mayGrow: 3, aim: { atMost: 100 } },
      pollP99Ms: { what: 'p99', unit: 'ms', of: 'median', mayGrow: null, aim: { atMost: 5 } },
      longestStallMs: { what: 'longest stall', unit: 'ms', of: 'median', mayGrow: null, aim: { atMost: 20 } },
      idlePercent: { what: 'idle, of a core', unit: '%', mayGrow: LINEAR, aim: { atMost: 1 } },
      coldListCpuMs: { what: 'CPU of the first five `GET /v1/instances`', unit: 'ms', mayGrow: LINEAR },
      listCpuMs: { what: 'CPU of those after them', unit: 'ms', mayGrow: LINEAR, aim: { atMost: 10 } },
      listMs: { what: 'until its last byte', unit: 'ms', mayGrow: null },
      listMb: { what: 'its bytes', unit: 'MB', mayGrow: null },
    },
  },
  {
    id: 'memory',
    what: 'instances that were each read',
    of: 'instances',
    n: { full: 10_000, quick: 1_000 },
    rounds: { full: 1, quick: 1 },
    on: SQLITE,
    load: () => import('./subjects/memory.ts'),
    figures: { rssMb: { what: 'resident memory', unit: 'MB', mayGrow: LINEAR, aim: { atMost: 300 } } },
  },
  {
    id: 'idle-sync',
    what: 'following deployments that do not change',
    of: 'deployments',
    n: { full: 10_000, quick: 300 },
    rounds: { full: 1, quick: 1 },
    on: BOTH,
    isTogether: 'quick',
    load: () => import('./subjects/idle-sync.ts'),
    figures: {
      corePercentOf1000: {
        ...{ what: 'CPU of 1,000, with the database, of a core', unit: '%', mayGrow: FLAT },
        aim: { atMost: 0.5 },
      },
      // 50 with an interval of 10 to 30 s. With fewer, it cannot keep up.
      pollsPerSOf1000: { what: 'polls a second of 1,000', unit: '', mayGrow: null },
      writesPerS: { what: 'write transactions a second', unit: '', mayGrow: LINEAR },
      // After a checkpoint PostgreSQL writes whole pages. The measured time may include a checkpoint.
      kibADay: { what: 'written a day for each', unit: 'KiB', mayGrow: null },
    },
  },
  {
    id: 'create-deployment',
    what: '`POST /api/deployments`',
    of: 'live ones',
    n: { full: 500, quick: 200 },
    rounds: { full: 3, quick: 1 },
    on: SQLITE,
    load: () => import('./subjects/create-deployment.ts'),
    figures: {
      cpuMs: { what: 'CPU with its launch', unit: 'ms', mayGrow: FLAT, aim: { atMost: 8 } },
    },
  },
  {
    id: 'slice',
    what: 'a slice that is billed',
    of: 'deployments',
    n: { full: 200, quick: 50 },
    on: BOTH,
    load: () => import('./subjects/bill-slices.ts'),
    figures: {
      cpuMs: { what: 'CPU', unit: 'ms', mayGrow: FLAT, aim: { atMost: 0.5 } },
      // With few deployments, several slices share a page.
      kib: { what: 'written', unit: 'KiB', mayGrow: 4, aim: { atMost: 10 } },
    },
  },
];
