import { volumePath } from '../../contract/paths.ts';
import { stringField } from '../../text/json.ts';
import { successOf } from '../../transcript/exchange.ts';
import type { Instance, Session } from '../session.ts';
import { attach, pollVolume, type Volume } from './volume-steps.ts';

/** Detaches an attached volume from an empty list of instances. If that detached it, it is attached again. */
export async function detachFromNone(session: Session, volume: Volume, instance: Instance): Promise<void> {
  await session.post('volumes/detach-none/post', volumePath(volume, '/detach'), { instance_ids: [] });
  const read = await session.get('volumes/detach-none/read', volumePath(volume));
  if (stringField(successOf(read), 'status') === 'ATTACHED') return;
  await pollVolume(session, 'volumes/detach-none/poll', volume, (status) => status === 'AVAILABLE', {
    text: `the volume ${volume.entry.name} to be detached`,
    onTheWay: ['DETACHING'],
  });
  await attach(session, 'volumes/attach-anew', volume, instance);
}
