import type { OwnerRef } from './platform-driver.ts';
import type { ResourceKind } from './work.ts';

/** What a listing of a platform was, per kind of resource: the last one. Times are milliseconds since the epoch. */
export interface ListingFact {
  platform: string;
  resourceKind: ResourceKind;
  beganAt: number;
  endedAt: number;
  /** Every host has answered, and the listing was accepted. */
  isComplete: boolean;
  silentHosts: readonly string[];
}

/**
 * How what a platform shows differs from the rows.
 *
 * - `no_row`: it carries our mark and no row is about it. Its id reads 503.
 * - `missing`: a row expects it, and it is not shown.
 * - `renamed`: somebody gave it another name on the platform.
 * - `copy`: somebody copied it, mark included.
 * - `leftover`: disks of it are there, and it is not.
 */
export const sightingKinds = ['no_row', 'missing', 'renamed', 'copy', 'leftover'] as const;

export interface SightingDetail {
  /** Why it has no row, in words for the operator. */
  problem?: string;
  /** The unit that it takes, if its note says so. */
  placement?: { offerId: string; region: string };
  /** The storage that it takes, if its note says so. */
  storage?: { region: string; gb: number };
}

/**
 * A difference that a listing showed. It stays until the resource has its row, an operator closes it, or the platform proves
 * that it is gone: a listing that leaves it out does not close it.
 */
export interface Sighting {
  platform: string;
  resourceKind: ResourceKind;
  what: (typeof sightingKinds)[number];
  /** The name that the platform shows. */
  name: string;
  /** The name in its mark. */
  ref: OwnerRef;
  resourceId: string;
  /** Which host showed it. */
  host: string | null;
  /** Milliseconds since the epoch. */
  since: number;
  /** When a listing showed it last, in milliseconds since the epoch. */
  seenAt: number;
  detail: SightingDetail;
}
