/**
 * The kinds of subjects that can be cordoned. A host must be one that the platform reports; its driver places nothing
 * new there.
 */
export const cordonKinds = ['region', 'offer', 'platform', 'host'] as const;
export type CordonKind = (typeof cordonKinds)[number];

/**
 * Creates that a host refused alike, one after the other; of an offer, if the platform does not say which host refused.
 * From the third one on the subject is out of placement: see docs/decisions/0034-creates-refused-alike.md.
 */
export interface Refusals {
  /** The code and the words of the refusal, without names, ids and sizes. */
  cause: string;
  /** The instances that were refused, at most three. */
  instances: readonly string[];
  /** When the subject was taken out of placement, in milliseconds since the epoch. Null before the third refusal. */
  outAt: number | null;
  /** When the next create may be placed there as a trial. */
  trialAt: number;
  /** How long a trial waits after the third refusal, or after the last trial. */
  backoffMs: number;
  /** The instance of the last trial. Null before the first trial and after a refused one. */
  trial: string | null;
}

export interface CordonSubject {
  kind: CordonKind;
  /** The token of a region, the id of an offer, or the name of a platform or of one of its hosts. */
  name: string;
  /** The platform that the cordon applies to. Null for a region or an offer on all platforms. */
  platform: string | null;
}

/**
 * One cordon. While it is in force, nothing new is placed on its subject; existing instances keep running. Times are
 * milliseconds since the Unix epoch.
 */
export interface CordonRecord extends CordonSubject {
  id: string;
  since: number;
  /** Null if it is in force until it is removed. */
  until: number | null;
  /** Whether clients see the cordon in the catalog as maintenance, with its times and its reason. */
  isMaintenance: boolean;
  reason: string | null;
  /** The operator who set it, or `berth`. */
  by: string;
  /** What Berth set the cordon for. Null if an operator set it. */
  refusals: Refusals | null;
}

type Term = Pick<CordonRecord, 'since' | 'until' | 'isMaintenance' | 'refusals'>;

/**
 * Whether the cordon is in force at `now`. A maintenance window begins at `since`. Any other cordon applies as soon as
 * it is set, even on a server whose clock is behind. One of Berth is not in force while a trial is due.
 */
export function isActive(cordon: Term, now: number): boolean {
  return !(cordon.isMaintenance && cordon.since > now) && !isOver(cordon, now) && !isTrialDue(cordon, now);
}

/** Whether the cordon has ended, or its refusals are not enough for one. */
export function isOver({ until, refusals }: Pick<Term, 'until' | 'refusals'>, now: number): boolean {
  return (until !== null && until <= now) || refusals?.outAt === null;
}

/** Whether the next create may be placed there, to see whether creates are still refused. */
export function isTrialDue({ refusals }: Pick<Term, 'refusals'>, now: number): boolean {
  return refusals !== null && refusals.outAt !== null && refusals.trialAt <= now;
}

/** Whether both have exactly the same subject. A region on all platforms and the region on one are different subjects. */
export function isSame(one: CordonSubject, other: CordonSubject): boolean {
  return one.kind === other.kind && one.name === other.name && one.platform === other.platform;
}

/** A resource that is placed or to be placed. `host` is where it already is. */
export interface Placed {
  region: string;
  offer: string;
  platform: string;
  host?: string | null | undefined;
}

/** Whether the cordon applies to a resource placed like that. */
export function concerns({ kind, name, platform }: CordonSubject, placed: Placed): boolean {
  return placed[kind] === name && (platform === null || platform === placed.platform);
}

export interface CordonReader {
  /** Lists the cordons, ordered by start. Expired ones may still be included. */
  list(): Promise<CordonRecord[]>;
}
export interface CordonWriter extends CordonReader {
  insert(cordon: CordonRecord): Promise<void>;
  remove(id: string): Promise<void>;
  removeEndedBefore(time: number): Promise<void>;
}
