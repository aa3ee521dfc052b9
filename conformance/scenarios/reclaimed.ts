import type { Exchange } from '../transcript/records.ts';
import { successOf, textField } from '../wire/json.ts';
import type { Instance } from './session.ts';

/** Why steps are not taken with it. */
export const RECLAIMED = 'the SPOT instance was reclaimed';

/** Whether a read shows the end of a SPOT instance, which nobody has to have asked for. */
export function isReclaimed({ placement }: Instance, read: Exchange | undefined): boolean {
  if (placement.offer['instance_type'] !== 'SPOT' || read === undefined) return false;
  const status = textField(successOf(read), 'status') ?? '';
  return read.answer?.status === 404 || ['DESTROYING', 'DESTROYED'].includes(status);
}
