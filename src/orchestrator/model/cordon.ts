/**
 * The kinds of subjects that can be cordoned. A host must be one that the platform reports; its driver places nothing
 * new there.
 */
export const cordonKinds = ['region', 'offer', 'platform', 'host'] as const;
export type CordonKind = (typeof cordonKinds)[number];

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
  /** The operator who set it. */
  by: string;
}

/**
 * Whether the cordon is in force at `now`. A maintenance window begins at `since`. Any other cordon applies as soon as
 * it is set, even on a server whose clock is behind.
 */
export function isActive(
  { since, until, isMaintenance }: Pick<CordonRecord, 'since' | 'until' | 'isMaintenance'>,
  now: number,
): boolean {
  return !(isMaintenance && since > now) && !isOver({ until }, now);
}

export function isOver({ until }: Pick<CordonRecord, 'until'>, now: number): boolean {
  return until !== null && until <= now;
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
