import { instancePath } from '../../contract/paths.ts';
import type { Instance, Session } from '../session.ts';

/** How many reads are sent at the same moment. */
const READERS = 5;
/** So many rounds make enough reads to judge their latency by. */
const ROUNDS = 4;
/** The time between two rounds: less than a worker may lag behind another unnoticed. */
const PAUSE_MS = 700;
/** Reads that a rate limit or a busy machine spreads over more than this are not side by side. */
const SPREAD_MS = 500;

/**
 * Reads instances from several readers at the same moment, as a marketplace with several workers does, and soon again. It
 * ends early if a rate limit delays the reads, so that they are not at the same moment.
 */
export async function readSideBySide(
  session: Session,
  scenario: string,
  instances: readonly Instance[],
): Promise<void> {
  if (instances.length === 0) return;
  for (let round = 0; round < ROUNDS; round++) {
    const paths = Array.from({ length: READERS }, (_, reader) =>
      instancePath(instances[(round * READERS + reader) % instances.length] ?? {}),
    );
    const reads = await session.client.getTogether(`${scenario}/side-by-side`, paths, session.signal);
    const times = reads.map(({ sentAt }) => sentAt);
    if (Math.max(...times) - Math.min(...times) > SPREAD_MS) return;
    if (round < ROUNDS - 1) await session.sleep(PAUSE_MS);
  }
}
