import type { InstanceStatus } from '../../contract/instance.ts';
import type { InstanceWorkKind } from './work.ts';

/** One call of a step to the platform, or one SSH proof. */
export interface PlatformCall {
  /** The step of the driver, `get`, or `ssh`. */
  call: string;
  /** `done`, `pending` or the code of a failure · `observed`, `gone`, `unknown` · `proved`, or the step of the proof that failed. */
  outcome: string;
  tookMs: number;
  detail?: string;
}

/** Who asked for something: a client by the key of its account, or an operator. */
export interface RequestedBy {
  /** The id of the account, or the name of the operator. */
  account?: string;
  operator?: string;
  /** The id of the key; `password` and `environment` are ways in without one. */
  key?: string;
  /** Null: this machine. */
  address: string | null;
}

/** Of an instance: a change of its status, a step of its work, or both at once. Times are milliseconds since the epoch. */
export interface HistoryEvent {
  instanceId: string;
  at: number;
  /** The step of work; `request`: a client asked for it · `attach`: a volume that is attached cold. */
  cause: InstanceWorkKind | 'request' | 'attach';
  /** Null: it was no step. */
  attempt: number | null;
  /** Null: the status stayed. */
  fromStatus: InstanceStatus | null;
  toStatus: InstanceStatus | null;
  /** What follows: another step, `again` or `finish`; null: it was no step. */
  next: string | null;
  /** Why, where something failed: in the platform's own words, for the operator alone. */
  detail: string | null;
  calls: PlatformCall[];
  /** The end of the console of a machine that failed; without keys and passwords. */
  console: string | null;
  tookMs: number | null;
  /** Null: a step did it, or it is from before that was kept. */
  by: RequestedBy | null;
}

/** A change of status, to be merged with the step in whose transaction it happened. */
export type Moved = Pick<HistoryEvent, 'instanceId' | 'at' | 'cause' | 'detail'> & {
  fromStatus: InstanceStatus;
  toStatus: InstanceStatus;
  by?: RequestedBy | null;
};

/** What was asked for without a change of the status, such as `start`. */
export type Asked = Pick<HistoryEvent, 'instanceId' | 'at'> & { what: string; by?: RequestedBy | null };

/** How a create ended: ONLINE, ERROR, or DESTROYING where its owner did not wait. */
export type ProvisionOutcome = Pick<HistoryEvent, 'instanceId' | 'at' | 'cause' | 'toStatus' | 'calls'> & {
  /** Null: its row is pruned. */
  createdAt: number | null;
};

export interface HistoryReader {
  /** Of one instance, the oldest first. */
  of(instanceId: string): Promise<HistoryEvent[]>;
  /** How creates ended since a time, the oldest first: among the newest `newest` events, so that it costs no more in a large table. */
  provisionOutcomes(among: { since: number; newest: number }): Promise<ProvisionOutcome[]>;
}
/** What is added is written at the end of the transaction: one row for each instance. */
export interface HistoryWriter extends HistoryReader {
  moved(event: Moved): Promise<void>;
  asked(event: Asked): Promise<void>;
  /** `isNews` false: it is left out, unless the instance has changed its status with it. */
  step(event: Omit<HistoryEvent, 'fromStatus' | 'toStatus' | 'by'>, isNews: boolean): Promise<void>;
  /** Of the oldest `limit` events, deletes those from before a time; returns how many. */
  pruneOldest(before: number, limit: number): Promise<number>;
}
