import type { Instance } from './model.ts';
import type { World } from './world.ts';

/** Completes pending attaches and detaches once the machine runs or is off. */
export function settleAttachments({ volumes, options }: World, { id, status }: Instance): void {
  if (status !== 'ONLINE' && status !== 'STOPPED') return;
  for (const volume of volumes.values()) {
    const attachment = volume.attachments.get(id);
    if (volume.isCreated && attachment?.state === 'attaching') attachment.state = 'attached';
    if (attachment !== undefined) attachment.isOff = status === 'STOPPED';
    const isDetached = options.detach === 'cold' && status === 'STOPPED' && attachment?.state === 'detaching';
    if (isDetached) volume.attachments.delete(id);
  }
}

/** Ends the attachments of an instance that no longer exists. */
export function endAttachments({ volumes, rules }: World, instance: Instance): void {
  for (const volume of volumes.values())
    if (rules.endsAttachments(instance, volume)) volume.attachments.delete(instance.id);
}
