import type { Problem } from '../../evidence/finding.ts';
import { showsAttachments } from '../../scenarios/volumes/volume-steps.ts';
import { parseJson, stringsField } from '../../text/json.ts';
import { shortJson } from '../../text/wording.ts';
import { successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { shownStatus } from '../check.ts';

/** The problem of a read that does not show the volume attached to the instance. The list of instances is optional. */
export function attachmentProblem(read: Exchange, instanceId: string): Problem | undefined {
  const shown = successOf(read);
  const expected = `ATTACHED, with ${instanceId} in attached_instance_ids`;
  if (shownStatus(read) !== 'ATTACHED') return { expected, actual: shownStatus(read), shown: read };
  const holders = stringsField(shown, 'attached_instance_ids');
  return showsAttachments(shown) && !holders.includes(instanceId)
    ? { expected, actual: `ATTACHED, with ${shortJson(holders, 200)}`, shown: read }
    : undefined;
}

/** The single instance that an attach, a detach or a create names. */
export function namedIn({ request }: Exchange): string {
  return stringsField(parseJson(request.body), 'instance_ids')[0] ?? '';
}
