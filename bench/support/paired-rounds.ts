import { sendLoad } from './load.ts';
import type { ServerProcess } from './server-process.ts';

export interface Candidate {
  name: string;
  server: ServerProcess;
  requests: readonly Buffer[];
  expectedStatus: number;
}

export interface Rounds {
  rounds: number;
  requests: number;
  connections: number;
}

/** CPU µs per request of each candidate, one number for each round. */
export type Measured = Record<string, number[]>;

const SETTLE_REQUESTS = 500;

/** In each round every candidate answers the same number of requests, in random order. */
export async function measureRounds(candidates: readonly Candidate[], options: Rounds): Promise<Measured> {
  const measured: Measured = Object.fromEntries(candidates.map(({ name }) => [name, []]));
  for (let round = 0; round < options.rounds; round++)
    for (const candidate of shuffled(candidates))
      measured[candidate.name]?.push(await cpuUsPerRequest(candidate, options));
  return measured;
}

/** Sends `count` requests that are not measured, so that later ones run compiled code and cached data. */
export async function warmUp(candidate: Candidate, count: number, connections: number): Promise<void> {
  await sendLoad({ ...candidate, port: candidate.server.port, count, connections });
}

/** No forced garbage collection before: it discards compiled code, which costs the leaner server more. */
async function cpuUsPerRequest(
  candidate: Candidate,
  { requests: count, connections }: Rounds,
): Promise<number> {
  const { server } = candidate;
  await warmUp(candidate, SETTLE_REQUESTS, connections);
  const before = await server.usage();
  await warmUp(candidate, count, connections);
  const cpuUs = (await server.usage()).cpuUs - before.cpuUs;
  if (!(cpuUs > 0)) throw new Error(`${candidate.name}: the CPU time cannot be read here`);
  return cpuUs / count;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low = Number.NaN, high = Number.NaN] =
    sorted.length % 2 === 1 ? [sorted[middle], sorted[middle]] : [sorted[middle - 1], sorted[middle]];
  return (low + high) / 2;
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, key: Math.random() }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item);
}
