import type { Random } from '../ports/clock.ts';

/** Makes request ids that are unique and cheap: a random start, then a count. */
export function requestIds(random: Random): () => string {
  const prefix = random.bytes(6).toString('hex');
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}
