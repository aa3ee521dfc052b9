import { instancePath } from '../../contract/paths.ts';
import { isSuccess, statusOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Instance, Session } from '../session.ts';

const STOP = { end: 'STOPPED', before: ['STOPPING', 'ONLINE'], onTheWay: ['STOPPING'] };
const START = { end: 'ONLINE', before: ['STOPPED', 'PROVISIONING'], onTheWay: ['STOPPED', 'PROVISIONING'] };
/** A platform may be busy for some seconds after a start or a stop. */
const BUSY_MS = 10_000;

/**
 * Stops or starts an instance and waits for the end of it. The steps are `<step>` and `<step>-poll`. Returns the last read,
 * or the request if that was refused: `mostAsked` times, if with 409.
 */
export async function stopOrStart(
  session: Session,
  step: string,
  instance: Instance,
  action: 'stop' | 'start',
  mostAsked = 1,
): Promise<Exchange | undefined> {
  let asked = await session.post(step, instancePath(instance, `/${action}`));
  for (let count = 1; statusOf(asked) === 409 && count < mostAsked; count++) {
    session.waitsFor(`the instance to be ready for another ${action}`);
    await session.sleep(BUSY_MS);
    asked = await session.post(step, instancePath(instance, `/${action}`));
  }
  if (!isSuccess(asked)) return asked;
  const { end, before, onTheWay } = action === 'stop' ? STOP : START;
  const isOver = (status: string | undefined) => status !== undefined && !before.includes(status);
  const text = `${instance.entry.name} to be ${end}`;
  return session.poll(`${step}-poll`, instance, isOver, { text, onTheWay });
}
