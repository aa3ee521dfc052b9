/**
 * Why a machine or a volume is removed.
 * - `tenant`: a DELETE of its account.
 * - `operator`: an operator's removal.
 * - `failed_create`: a create or copy failed or was replaced by another attempt; the order removes what it made.
 * - `moved`: the verified copy has become the volume; the order removes the original.
 * - `policy`: the operator's configuration removes it, such as `retention.failed_machines_minutes`.
 */
export const destroyReasons = ['tenant', 'operator', 'failed_create', 'moved', 'policy'] as const;
export type DestroyReason = (typeof destroyReasons)[number];

declare const recorded: unique symbol;

/**
 * A recorded request to remove a machine or a volume with its data. Every driver call that removes something takes one.
 * A missing resource never produces an order.
 */
export interface DestroyOrder {
  readonly [recorded]: true;
  readonly reason: DestroyReason;
  /** The account, the operator or the server that recorded it. */
  readonly by: string;
  /** When it was recorded, in milliseconds since the epoch. */
  readonly at: number;
  /**
   * Set if the instance ended without a request. Its machine is switched off, and removed with its disks after
   * `retention.lost_disks_hours`.
   */
  readonly keepsDisks?: true;
}

/**
 * Makes an order. Call it only in the transaction that writes the order to the database, or with an order read from
 * there.
 */
export function recordedOrder(order: Omit<DestroyOrder, typeof recorded>): DestroyOrder {
  return order as DestroyOrder;
}

/** The order without `keepsDisks`, as a driver gets it. The core handles the wait while disks are kept. */
export function toDriver({ keepsDisks: _, ...order }: DestroyOrder): DestroyOrder {
  return order;
}

/** The tenant or the operator who requests the removal of a resource. */
export interface Requester {
  reason: Extract<DestroyReason, 'tenant' | 'operator'>;
  by: string;
}

/**
 * Until when the disks of the machine stay, in milliseconds since the epoch: see `retention.lost_disks_hours`. On a platform
 * that cannot switch the machine off, they go with it.
 */
export function disksKeptUntil(
  { keepsDisks, at }: Pick<DestroyOrder, 'keepsDisks' | 'at'>,
  { options, driver }: { options: { keepDisksMs: number }; driver: { manifest: { stop: boolean } } },
): number {
  return keepsDisks && driver.manifest.stop ? at + options.keepDisksMs : 0;
}
