import { DEFAULT_PLATFORM } from './platform-resource.ts';

/**
 * Timestamps stored for a platform: the start of its outage, since when too many of its volumes are missing, until when
 * the operator accepts losses beyond the cap, when the backup was taken that this database was restored from, and the
 * latest creation time of a pruned instance or volume. `writer_epoch` is a number instead: see writer-mark.ts.
 */
export type PlatformMark =
  | 'platform_down_since'
  /** Never written. A transaction reads it to serialize the choice of hosts, and changes of what refused creates. */
  | 'placing'
  | 'volumes_doubted_since'
  | 'losses_accepted_until'
  | 'restored_from'
  | 'instances_pruned_until'
  | 'volumes_pruned_until'
  | 'writer_epoch';
/** The name of a mark. Marks of the platform `default` do not contain the platform. See {@link markOf}. */
export type MarkName =
  | PlatformMark
  | `${PlatformMark}:${string}`
  | 'reload_requested_at'
  /** The account of BERTH_API_KEY was closed for good. */
  | 'default_account_closed'
  /** An operator's order about a machine, by its ref. */
  | `adopt_requested:${string}`
  | `release_requested:${string}`;

/** The name of a platform's mark. */
export function markOf(platform: string, name: PlatformMark): MarkName {
  return platform === DEFAULT_PLATFORM ? name : `${name}:${platform}`;
}

export interface MarkReader {
  /** Milliseconds since the epoch. Null if the mark does not exist. */
  get(name: MarkName): Promise<number | null>;
}
export interface MarkWriter extends MarkReader {
  put(name: MarkName, at: number): Promise<void>;
  /** Removes the mark and returns its value. Of several concurrent callers, one gets the value. */
  remove(name: MarkName): Promise<number | null>;
}
