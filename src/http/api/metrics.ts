import { Gauge, type Registry } from 'prom-client';
import type { Clock } from '../../ports/clock.ts';

/** How long a figure of the metrics is cached. */
const CACHE_MS = 5_000;

/**
 * A figure that the database counts, at most once in five seconds however often it is read. Undefined while the
 * database does not answer.
 */
export function cachedFigure<T>(clock: Clock, count: () => Promise<T>): () => Promise<T | undefined> {
  let cached: { at: number; figure: Promise<T | undefined> } | undefined;
  return () => {
    const now = clock.now();
    if (cached === undefined || now - cached.at >= CACHE_MS || now < cached.at)
      cached = { at: now, figure: count().catch(() => undefined) };
    return cached.figure;
  };
}

/** `berth_build_info`: which version this is, and of which Node, as labels of a gauge that is always 1. */
export function collectBuild(registers: Registry[], version: string): void {
  new Gauge({
    name: 'berth_build_info',
    help: 'The version of Berth that runs, and of Node.',
    labelNames: ['version', 'node'],
    registers,
  }).set({ version, node: process.version }, 1);
}
