/** What can be cordoned. A host is one that the platform tells of: its driver places nothing new there. */
export const cordonKinds = ['region', 'offer', 'platform', 'host'] as const;
export type CordonKind = (typeof cordonKinds)[number];

/** What is cordoned. */
export interface CordonSubject {
  kind: CordonKind;
  /** A region's token, an offer's id, the name of a platform or of one of its hosts. */
  name: string;
  /** The platform that it is about. Null: a region or an offer on each platform. */
  platform: string | null;
}

/**
 * One row of the cordons: nothing new is placed on its subject while it stands, and what runs there goes on. Times are
 * milliseconds since the Unix epoch.
 */
export interface CordonRecord extends CordonSubject {
  id: string;
  since: number;
  /** Null: until it is removed. */
  until: number | null;
  /** Whether clients see it in the catalog: as maintenance, with its times and its reason. */
  isMaintenance: boolean;
  reason: string | null;
  /** Who set it. */
  by: string;
}

/**
 * Whether it is in force at that time. A window of maintenance begins by the clock; any other cordon stands from the moment that
 * it is set, also by a clock that is behind.
 */
export function stands(
  { since, until, isMaintenance }: Pick<CordonRecord, 'since' | 'until' | 'isMaintenance'>,
  now: number,
): boolean {
  return !(isMaintenance && since > now) && !isOver({ until }, now);
}

export function isOver({ until }: Pick<CordonRecord, 'until'>, now: number): boolean {
  return until !== null && until <= now;
}

/** What is placed, or is to be. `host`: where it is already. */
export interface Placed {
  region: string;
  offer: string;
  platform: string;
  host?: string | null | undefined;
}

/** Whether the cordon is about what is placed like that. */
export function concerns({ kind, name, platform }: CordonSubject, placed: Placed): boolean {
  return placed[kind] === name && (platform === null || platform === placed.platform);
}

export interface CordonReader {
  /** The first to begin first. Those that are over may still be among them. */
  list(): Promise<CordonRecord[]>;
}
export interface CordonWriter extends CordonReader {
  insert(cordon: CordonRecord): Promise<void>;
  remove(id: string): Promise<void>;
  removeEndedBefore(time: number): Promise<void>;
}
