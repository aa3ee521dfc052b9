import type { VolumeAction, VolumeRecord } from '../records/volume-record.ts';

/** What ends once no attachment is on its way any more. */
export const ofAttachments: readonly VolumeAction['kind'][] = ['create', 'attach', 'detach'];

/**
 * What is under way of a volume after changes of the kinds `over` have ended. One change never ends another: a larger
 * size ends by what the provider says, a deletion by proof. As long as an attachment is on its way, something is under
 * way, so that somebody looks after it.
 */
export function actionAfter(
  { action }: Pick<VolumeRecord, 'action'>,
  { over, isInTransit, at }: { over: readonly VolumeAction['kind'][]; isInTransit: boolean; at: number },
): VolumeAction | null {
  if (action !== null && !over.includes(action.kind)) return action;
  if (!isInTransit) return null;
  return action !== null && ofAttachments.includes(action.kind) ? action : { kind: 'detach', since: at };
}
