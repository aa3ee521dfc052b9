import { isProvedGone } from '../resources/proved-gone.ts';
import type { Exchange } from '../transcript/records.ts';
import { instancePath } from '../wire/paths.ts';
import type { Instance, Session } from './session.ts';

/**
 * Destroys an instance and polls until it reads 404 or DESTROYED and no list shows it alive: only then is it gone in the
 * ledger. Its steps are `<step>/delete`, `<step>/poll` and `<step>/list`. Answers with the exchange of the DELETE.
 */
export async function destroyAndConfirm(
  session: Session,
  step: string,
  instance: Instance,
): Promise<Exchange> {
  const deleted = await session.delete(`${step}/delete`, instancePath(instance));
  await confirmGone(session, step, instance);
  return deleted;
}

/** The second half of `destroyAndConfirm`. */
export async function confirmGone(session: Session, step: string, instance: Instance): Promise<void> {
  const last = await session.poll(
    `${step}/poll`,
    instance,
    (status) => status === '404' || status === 'DESTROYED',
    `${instance.entry.name} to be gone`,
  );
  if (last === undefined) return;
  const list = await session.get(`${step}/list`, '/instances');
  if (isProvedGone(instance.id, last, list)) session.ledger.gone(instance.entry);
}
