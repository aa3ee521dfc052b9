import type { OwnerRef } from './platform-driver.ts';
import type { ResourceKind } from './work.ts';

/** The last listing of one kind of resource on a platform. Times are milliseconds since the epoch. */
export interface ListingFact {
  platform: string;
  resourceKind: ResourceKind;
  beganAt: number;
  endedAt: number;
  /** Whether every host answered and the listing was accepted. */
  isComplete: boolean;
  silentHosts: readonly string[];
}

/**
 * How a listing differs from the rows.
 * - `no_row`: a resource has Berth's mark and no row. A GET of its id returns 503.
 * - `missing`: the machine of a row is not listed.
 * - `renamed`: the resource has another name on the platform than in its mark.
 * - `copy`: a copy of the resource, made outside Berth, has its mark.
 * - `leftover`: parts, such as disks or ports, exist without their machine or volume.
 */
export const sightingKinds = ['no_row', 'missing', 'renamed', 'copy', 'leftover'] as const;

export interface SightingDetail {
  /** The problem, in words for the operator. */
  problem?: string;
  /** The unit that it takes, if its note has one. */
  placement?: { offerId: string; region: string };
  /** The storage that it takes, if its note has it. */
  storage?: { region: string; gb: number };
}

/**
 * A difference between a listing and the rows. `no_row` stays until the resource has its row or is proved gone; absence
 * from a listing does not close it. The first listing without the difference closes any other kind, unless its host is
 * silent.
 */
export interface Sighting {
  platform: string;
  resourceKind: ResourceKind;
  what: (typeof sightingKinds)[number];
  /** The name on the platform. */
  name: string;
  /** The name in the mark. */
  ref: OwnerRef;
  resourceId: string;
  /** The host that showed it. */
  host: string | null;
  /** Milliseconds since the epoch. */
  since: number;
  /** When a listing last showed it, in milliseconds since the epoch. */
  seenAt: number;
  detail: SightingDetail;
}

export interface SightingReader {
  /** The last listing of a kind. Null if there is none. */
  listing(platform: string, resourceKind: ResourceKind): Promise<ListingFact | null>;
  /** The sightings of a platform, oldest first. */
  list(platform: string): Promise<Sighting[]>;
  /** Whether a platform shows a resource of that id without a row. */
  hasNoRow(resourceId: string): Promise<boolean>;
}
export interface SightingWriter extends SightingReader {
  putListing(listing: ListingFact): Promise<void>;
  put(sighting: Sighting): Promise<void>;
  remove(sighting: Pick<Sighting, 'platform' | 'resourceKind' | 'what' | 'name'>): Promise<void>;
}
