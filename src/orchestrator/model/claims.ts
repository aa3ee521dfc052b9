import type { InstanceStatus } from '../../contract/instance.ts';

/** Taken units of an offer in a region. */
export interface PlacementUse {
  offerId: string;
  region: string;
  claimed: number;
}
/** A unit that an instance holds. */
export interface HeldClaim {
  ownerRef: string;
  platform: string;
  status: InstanceStatus;
  /** Whether the instance failed and its machine is kept for the operator. */
  isKept: boolean;
  offerId: string;
  region: string;
}
export interface ClaimReader {
  use(): Promise<PlacementUse[]>;
  /** Claims of instances in ERROR. Their machines are kept for the operator or being removed. */
  ofFailed(): Promise<PlacementUse[]>;
  /** Every claim, with the data of its instance. */
  held(): Promise<HeldClaim[]>;
  isHeldBy(instanceId: string): Promise<boolean>;
}
export interface ClaimWriter extends ClaimReader {
  /** Takes one unit unless all `capacity` units are taken. Returns whether the instance now holds one. */
  take(claim: { instanceId: string; offerId: string; region: string; capacity: number }): Promise<boolean>;
  /** Releases the unit. Returns whether the instance held one. A second release has no effect. */
  release(instanceId: string): Promise<boolean>;
}

/** Storage that volumes claim in a region. */
export interface StorageClaimReader {
  use(): Promise<{ region: string; claimedGb: number }[]>;
  /** The GB that a volume claims. 0 if it claims none. */
  heldBy(volumeId: string): Promise<number>;
}
export interface StorageClaimWriter extends StorageClaimReader {
  /**
   * Sets the volume's claim to `gb`, larger or smaller than before, unless that exceeds what the other volumes leave of
   * `capacityGb` (null for no limit). Returns whether the volume now holds it.
   */
  take(claim: { volumeId: string; region: string; gb: number; capacityGb: number | null }): Promise<boolean>;
  /** Releases the volume's claim. Returns whether it held one. */
  release(volumeId: string): Promise<boolean>;
}

/** What an account has. The figures stay valid until the end of the transaction only after `lock`. */
export interface AccountUse {
  /** Serializes the transactions that add to what the account has. */
  lock(accountId: string): Promise<void>;
  /** Prevents the account from being closed before this transaction ends. */
  keepOpen(accountId: string): Promise<void>;
  /** Waits for transactions that called `keepOpen`. Later calls of `keepOpen` wait for this transaction. */
  lockToClose(accountId: string): Promise<void>;
  /** Counts instances that are not destroyed. */
  instances(accountId: string): Promise<number>;
  /** Counts volumes that are not proved gone. */
  volumes(accountId: string): Promise<number>;
  /** The storage that its volumes claim. */
  storageGb(accountId: string): Promise<number>;
  liveTokens(accountId: string, now: number): Promise<number>;
}
