import type { Draws } from '../transcript/draws.ts';

/** The longest wait between two rounds. */
const LONGEST_WAIT_MS = 2_000;

/** The requests whose order is free: each run draws it anew. `unauthenticated`: for each credential. */
export type DrawnOrder =
  | 'catalog/of-type'
  | 'catalog/of-region'
  | 'list/of-region'
  | 'token/wrong'
  | 'unknown'
  | 'unauthenticated';

/** A request that is sent in a drawn order. */
export interface OrderedRequest {
  step: string;
  method: string;
  /** Below the base URL, with its query. */
  path: string;
}

/** The requests in the order that the run draws for them. `round`: from 1, where all of them are sent several times. */
export function inDrawnOrder<T extends OrderedRequest>(
  draws: Draws,
  order: DrawnOrder,
  requests: readonly T[],
  round = 1,
): T[] {
  return draws.shuffled(labelOf(order, round), requests, nameOf);
}

/** How long the run waits before a later round, in milliseconds. */
export function waitBeforeRound(
  draws: Draws,
  order: DrawnOrder,
  round: number,
  pollIntervalMs: number,
): number {
  return round === 1
    ? 0
    : draws.fraction(`moment/${order}/${round}`) * Math.min(pollIntervalMs, LONGEST_WAIT_MS);
}

const labelOf = (order: DrawnOrder, round: number): string => `order/${order}/${round}`;
const nameOf = ({ step, method, path }: OrderedRequest): string => `${step} ${method} ${path}`;
