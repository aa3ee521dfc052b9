import type { Draws } from '../transcript/draws.ts';
import type { Exchange } from '../transcript/records.ts';

/** The longest wait between two rounds. */
const LONGEST_WAIT_MS = 2_000;
/** Timers may end so much too early. */
export const TIMER_MS = 5;

/** The requests whose order is free, by the first words of their steps. Each run draws it anew. */
const DRAWN_ORDERS = {
  'catalog/of-type': ['catalog/of-type'],
  'catalog/of-region': ['catalog/of-region'],
  'list/of-region': ['list/of-region'],
  'token/wrong': ['token/wrong-key', 'token/wrong-login', 'token/empty'],
  unknown: ['unknown'],
  // For each credential.
  unauthenticated: ['unauthenticated'],
} as const;

export type DrawnOrder = keyof typeof DRAWN_ORDERS;

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

/**
 * The first request that is not in its drawn place, by the requests of a transcript in the order of sending, without
 * superseded ones.
 */
export function firstOutOfOrder(draws: Draws, exchanges: readonly Exchange[]): Exchange | undefined {
  const last = new Map<string, number>();
  return placedRequests(exchanges).find(({ exchange, order, round, name }) => {
    const label = labelOf(order, round);
    const group = order === 'unauthenticated' ? exchange.step : label;
    const place = draws.place(label, name);
    const isBefore = place < (last.get(group) ?? 0);
    last.set(group, place);
    return isBefore;
  })?.exchange;
}

/** The first request of a round that was sent before its drawn moment, as `firstOutOfOrder`. */
export function firstTooEarly(
  draws: Draws,
  exchanges: readonly Exchange[],
  pollIntervalMs: number,
): Exchange | undefined {
  let before: Exchange | undefined;
  const begun = new Set<string>();
  return placedRequests(exchanges).find(({ exchange, order, round }) => {
    const isFirst = !begun.has(labelOf(order, round));
    begun.add(labelOf(order, round));
    const waitedMs = exchange.sentAt - (before?.endedAt ?? 0);
    before = exchange;
    return isFirst && waitedMs < waitBeforeRound(draws, order, round, pollIntervalMs) - TIMER_MS;
  })?.exchange;
}

/** The requests with a drawn order, in the order of sending. */
function placedRequests(exchanges: readonly Exchange[]) {
  const rounds = new Map<string, number>();
  return exchanges.flatMap((exchange) => {
    const order = orderOf(exchange.step);
    if (order === undefined) return [];
    const name = nameOf({ step: exchange.step, ...exchange.request });
    const round = (rounds.get(name) ?? 0) + 1;
    rounds.set(name, round);
    return [{ exchange, order, name, round }];
  });
}

const labelOf = (order: DrawnOrder, round: number): string => `order/${order}/${round}`;
const nameOf = ({ step, method, path }: OrderedRequest): string => `${step} ${method} ${path}`;

function orderOf(step: string): DrawnOrder | undefined {
  const orders = Object.keys(DRAWN_ORDERS) as DrawnOrder[];
  return orders.find((order) =>
    DRAWN_ORDERS[order].some((first) => step === first || step.startsWith(`${first}/`)),
  );
}
