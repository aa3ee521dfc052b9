import { instancePath } from '../../contract/paths.ts';
import { isSuccess } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Instance, Session } from '../session.ts';

const STOP = { end: 'STOPPED', before: ['STOPPING', 'ONLINE'], onTheWay: ['STOPPING'] };
const START = { end: 'ONLINE', before: ['STOPPED', 'PROVISIONING'], onTheWay: ['STOPPED', 'PROVISIONING'] };

/**
 * Stops or starts an instance and waits for the end of it. The steps are `<step>` and `<step>-poll`. Returns the last read,
 * or the request if that was refused.
 */
export async function stopOrStart(
  session: Session,
  step: string,
  instance: Instance,
  action: 'stop' | 'start',
): Promise<Exchange | undefined> {
  const asked = await session.post(step, instancePath(instance, `/${action}`));
  if (!isSuccess(asked)) return asked;
  const { end, before, onTheWay } = action === 'stop' ? STOP : START;
  const isOver = (status: string | undefined) => status !== undefined && !before.includes(status);
  const text = `${instance.entry.name} to be ${end}`;
  return session.poll(`${step}-poll`, instance, isOver, { text, onTheWay });
}
