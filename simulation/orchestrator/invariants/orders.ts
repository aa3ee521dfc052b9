import type { DestroyOrder } from '../../../src/orchestrator/model/destroy-order.ts';
import type { PlatformResource } from '../../../src/orchestrator/model/platform-resource.ts';
import type { InstanceRecord, VolumeRecord } from '../../../src/orchestrator/model/records.ts';
import { hold } from '../../kernel/violation.ts';

// I36: nothing is destroyed that nobody asked to destroy.

/** One write of a row, of an instance or a volume. */
interface Written<Row extends PlatformResource> {
  before: Row | undefined;
  after: Row;
}

/** What is true of the requests when a row is written. */
interface Requests {
  /** Whether its tenant ever sent a DELETE. */
  isDeleteSent: boolean;
  /** Whether the configuration has machines of failed instances removed after a time. */
  isPolicySet: boolean;
  /** Whether an operator ordered its removal. Absent where there is none. */
  isOrderedByOperator?: boolean;
}

/** I36: an instance that was destroyed was asked to end, or is a SPOT instance that the platform took back. */
export function endHasAnOrder({ id, status, spec, destroyOrder }: InstanceRecord): void {
  const isOver = status === 'DESTROYED' || status === 'DESTROYING';
  const mayEnd = destroyOrder !== null || spec.instanceType === 'SPOT';
  hold('I36', !isOver || mayEnd, () => `${id} is ${status}, and nobody asked for its end`, [id]);
}

/** I36: a volume that was deleted was asked to end. */
export function volumeEndHasAnOrder({ id, status, deletedAt, destroyOrder }: VolumeRecord): void {
  const isOver = deletedAt !== null || status === 'DELETING';
  hold('I36', !isOver || destroyOrder !== null, () => `${id} is deleted, and nobody asked for its end`, [id]);
}

/** I36: an order stays as it was recorded, and names a request that there was. */
export function orderNamesARequest(
  { before, after }: Written<(InstanceRecord | VolumeRecord) & { status: string }>,
  requests: Requests,
): void {
  const { id, destroyOrder: order } = after;
  const known = before?.destroyOrder ?? null;
  if (known !== null)
    hold('I36', isSame(known, order), () => `${id}: the order of its end is another one than before`, [id]);
  if (order === null || known !== null) return;
  const isTrue = {
    tenant: requests.isDeleteSent,
    operator: requests.isOrderedByOperator === true,
    failed_create: before?.status === 'PROVISIONING' || before?.status === 'CREATING',
    moved: false,
    policy: requests.isPolicySet && before?.status === 'ERROR',
  }[order.reason];
  hold(
    'I36',
    isTrue,
    () => `${id} was ${before?.status}, and is to be removed by ${order.reason}: nobody asked for that`,
    [id],
  );
  const hadEnded = before?.status === 'ERROR' || before?.status === 'OFFLINE';
  const keepsDisks = order.keepsDisks === true;
  hold(
    'I36',
    order.reason !== 'tenant' || keepsDisks === hadEnded || 'sizeGb' in after,
    () => `${id} was ${before?.status}, and its disks are ${keepsDisks ? '' : 'not '}kept after its DELETE`,
    [id],
  );
}

function isSame(one: DestroyOrder, other: DestroyOrder | null): boolean {
  return one.reason === other?.reason && one.by === other.by && one.at === other.at;
}

/** I36: a machine or a volume is removed only by an order. `row`: undefined: no row ever owned it. */
export function removalHasAnOrder(ref: string, row: PlatformResource | undefined): void {
  hold(
    'I36',
    row === undefined || row.destroyOrder !== null,
    () => `${ref} is removed, and nobody asked for its end`,
    [ref],
  );
}
