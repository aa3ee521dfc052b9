import type { InstanceStatus } from '../../contract/instance.ts';
import type { InstanceWorkKind } from './work.ts';

/** One call of a step to the platform, or one SSH proof. */
export interface PlatformCall {
  /** The name of the driver's step, `get`, or `ssh`. */
  call: string;
  /**
   * For a step: `done`, `pending` or a failure code. For `get`: `observed`, `gone` or `unknown`. For `ssh`: `proved`,
   * or the part of the proof that failed.
   */
  outcome: string;
  tookMs: number;
  detail?: string;
}

/** Who requested something: a client with the key of its account, or an operator. */
export interface RequestedBy {
  /** The id of the account, or the name of the operator. */
  account?: string;
  operator?: string;
  /** The id of the key. `password` and `environment` are logins without one. */
  key?: string;
  /** Null if the request came from this machine. */
  address: string | null;
}

/** A change of an instance's status, a step of its work, or both at once. Times are milliseconds since the epoch. */
export interface HistoryEvent {
  instanceId: string;
  at: number;
  /** The step of work. `request` means a client's request, and `attach` a cold attach of a volume. */
  cause: InstanceWorkKind | 'request' | 'attach';
  /** Null if the event is not a step. */
  attempt: number | null;
  /** Null if the status did not change. */
  fromStatus: InstanceStatus | null;
  toStatus: InstanceStatus | null;
  /** What follows: another step, `again` or `finish`. Null if the event is not a step. */
  next: string | null;
  /** Why something failed, in the platform's own words. For the operator only. */
  detail: string | null;
  calls: PlatformCall[];
  /** The end of the console of a failed machine, without keys and passwords. */
  console: string | null;
  tookMs: number | null;
  /** Null if a step caused it, or the event predates this field. */
  by: RequestedBy | null;
}

/** A change of status, merged with the step in whose transaction it happened. */
export type Moved = Pick<HistoryEvent, 'instanceId' | 'at' | 'cause' | 'detail'> & {
  fromStatus: InstanceStatus;
  toStatus: InstanceStatus;
  by?: RequestedBy | null;
};

/** A request that did not change the status, such as `start`. */
export type Requested = Pick<HistoryEvent, 'instanceId' | 'at'> & { what: string; by?: RequestedBy | null };

/**
 * How a create ended: ONLINE, ERROR, or DESTROYING if its owner deleted it before that. Or the failure of an instance
 * that had come ONLINE.
 */
export type Outcome = Pick<
  HistoryEvent,
  'instanceId' | 'at' | 'cause' | 'fromStatus' | 'toStatus' | 'calls'
> & {
  /** Null if the row of the instance is pruned. */
  instance: { createdAt: number; platform: string; offerId: string; region: string } | null;
};

/** Outcomes of calls that succeeded. `gone` is not one: a machine that disappears is why a create failed. */
const SUCCESSFUL = new Set(['done', 'pending', 'observed', 'proved']);

/** The last failed call, such as `ssh: auth` or `create: capacity`, or the step if no call failed. */
export function causeOf({ calls, cause }: Pick<HistoryEvent, 'calls' | 'cause'>): string {
  const failed = calls.findLast(({ outcome }) => !SUCCESSFUL.has(outcome));
  return failed === undefined ? cause : `${failed.call}: ${failed.outcome}`;
}

/** Whether two failed tries are of the same step and have the same cause. */
export function isSameFailure(a: Failure | undefined, b: Failure | undefined): boolean {
  if (a === undefined || b === undefined || a.next !== 'again' || b.next !== 'again') return false;
  return a.cause === b.cause && a.detail === b.detail && a.detail !== null;
}
type Failure = Pick<HistoryEvent, 'cause' | 'next' | 'detail'>;

/** How many tries between two neighbouring events failed as both did. The history leaves them out. */
export function triesBetween(before: Tried | undefined, event: Tried): number {
  if (!isSameFailure(before, event)) return 0;
  return Math.max(0, (event.attempt ?? 0) - (before?.attempt ?? 0) - 1);
}
type Tried = Failure & Pick<HistoryEvent, 'attempt'>;

export interface HistoryReader {
  /** Events of one instance, oldest first. */
  of(instanceId: string): Promise<HistoryEvent[]>;
  /**
   * The newest `limit` events between both times, which are included, newest first. Without an instance: only changes
   * of status.
   */
  between(
    of: { from: number; to: number; limit: number } & {
      [Name in 'instanceId' | 'host' | 'platform' | 'accountId']?: string | undefined;
    },
  ): Promise<HistoryEvent[]>;
  /** The newest events of one instance, newest first. */
  newest(instanceId: string, limit: number): Promise<HistoryEvent[]>;
  /** The newest `limit` outcomes from `since` on, newest first. */
  outcomes(among: { since: number; limit: number }): Promise<Outcome[]>;
}
/** Collects events and writes them at the end of the transaction, one row for each instance. */
export interface HistoryWriter extends HistoryReader {
  moved(event: Moved): Promise<void>;
  requested(event: Requested): Promise<void>;
  /**
   * Adds a step: as a row of its own, or in place of the newest row, which is an equal failure. `omit`: it is left out.
   * If the instance changed its status in it, it always has a row of its own.
   */
  step(
    event: Omit<HistoryEvent, 'fromStatus' | 'toStatus' | 'by'>,
    as: 'row' | 'replacement' | 'omit',
  ): Promise<void>;
  /** Deletes those of the oldest `limit` events that happened before `before`. Returns how many. */
  pruneOldest(before: number, limit: number): Promise<number>;
}
