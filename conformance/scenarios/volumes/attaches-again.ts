import type { Draws } from '../../transcript/draws.ts';
import type { Exchange } from '../../transcript/records.ts';

const MOST = 3;

/**
 * How often an attached volume is attached again: a drawn number, so that a server that fails each third attach cannot
 * be in step with the run.
 */
export function attachesAgain(draws: Draws): number {
  return 1 + Math.floor(draws.fraction('volumes/again') * MOST);
}

/**
 * The first request that shows more or fewer such attaches than drawn. `exchanges`: in the order of sending, without
 * superseded ones.
 */
export function firstOfOtherAttaches(draws: Draws, exchanges: readonly Exchange[]): Exchange | undefined {
  let left = attachesAgain(draws);
  return exchanges.find(({ step }) => {
    if (step === 'volumes/again/post') left--;
    return left < 0 || (step === 'volumes/again/poll' && left > 0);
  });
}
