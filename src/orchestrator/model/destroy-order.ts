/**
 * - `tenant`: a DELETE of its account.
 * - `operator`: an operator removed it.
 * - `failed_create`: a create of ours failed, or another attempt took its place, and this is what it made.
 * - `moved`: a verified copy is the volume now, and this is what it was copied from.
 * - `policy`: the operator's configuration removes it, such as `reconcile.orphans: reap`.
 */
export const destroyReasons = ['tenant', 'operator', 'failed_create', 'moved', 'policy'] as const;
export type DestroyReason = (typeof destroyReasons)[number];

declare const recorded: unique symbol;

/**
 * A recorded request to remove a machine or a volume with its data. Every driver call that removes something takes one,
 * and an absence never makes one.
 */
export interface DestroyOrder {
  readonly [recorded]: true;
  readonly reason: DestroyReason;
  /** The account, the operator, or the server that recorded it. */
  readonly by: string;
  /** When it was recorded, in milliseconds since the epoch. */
  readonly at: number;
  /** The instance had ended before, without a request: its machine is removed, and its disks after `losses.keep_disks_hours`. */
  readonly keepsDisks?: true;
}

/** Call it only where the order is written to the database, in the same transaction, or read from there. */
export function recordedOrder(order: Omit<DestroyOrder, typeof recorded>): DestroyOrder {
  return order as DestroyOrder;
}

/** The order as a driver gets it: the core has waited for as long as disks are kept. */
export function toDriver({ keepsDisks: _, ...order }: DestroyOrder): DestroyOrder {
  return order;
}

/** Who asks for the end of a resource. */
export interface Requester {
  reason: Extract<DestroyReason, 'tenant' | 'operator'>;
  by: string;
}
