import { textField } from '../wire/json.ts';
import type { Instance } from './session.ts';

/**
 * What a 409 to the stop of an ONLINE instance says. The row of the contract is for what is stoppable: SPOT machines,
 * bare metal and clusters often are not.
 */
export function notStoppable({ placement }: Instance): { reason: string; capability: string | undefined } {
  const type = textField(placement.offer, 'instance_type');
  return {
    reason: `the stop of the ONLINE instance, of an offer of type ${type}, was answered 409`,
    capability: type === 'DEDICATED' ? undefined : 'stopping an ONLINE instance',
  };
}
