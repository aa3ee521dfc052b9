import type { Draws } from '../../transcript/draws.ts';

const MOST = 3;

/**
 * How often an attached volume is attached again: a drawn number, so that a server that fails each third attach cannot
 * be in step with the run.
 */
export function attachesAgain(draws: Draws): number {
  return 1 + Math.floor(draws.fraction('volumes/again') * MOST);
}
