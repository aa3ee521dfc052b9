import { successOf, textField } from '../wire/json.ts';
import { instancePath } from '../wire/paths.ts';
import { requirePrimary } from './primary.ts';
import type { Scenario } from './scenario.ts';
import type { Instance, Session } from './session.ts';

/** Watches the instance boot, and asks of it what may not be asked while it is PROVISIONING. */
export const boot: Scenario = {
  id: 'boot',
  level: 'lifecycle',
  title: 'waits until the instance is ONLINE',
  after: ['create'],
  buys: [],
  async run(session) {
    const instance = requirePrimary(session, 'boot');
    if (instance === undefined) return;
    await askTooEarly(session, instance);
    await session.get('boot/list', '/instances');
    await comeOnline(session, instance);
  },
};

/** Reads stand on both sides, so that what was asked was asked of a PROVISIONING instance. */
async function askTooEarly(session: Session, instance: Instance): Promise<void> {
  const path = instancePath(instance);
  await session.get('boot/before-stop', path);
  await session.post('boot/stop', instancePath(instance, '/stop'));
  await session.get('boot/after-stop', path);
  await session.get('boot/before-start', path);
  await session.post('boot/start', instancePath(instance, '/start'));
  await session.get('boot/after-start', path);
}

async function comeOnline(session: Session, instance: Instance): Promise<void> {
  const isSettled = (status: string | undefined) => status !== undefined && status !== 'PROVISIONING';
  let last = await session.poll('boot/poll', instance, isSettled, 'the instance to come ONLINE');
  if (last !== undefined && ['STOPPED', 'STOPPING'].includes(textField(successOf(last), 'status') ?? '')) {
    // A stop that was accepted too early is a failure of its own; the run goes on from there.
    await session.poll(
      'boot/poll',
      instance,
      (status) => status !== 'STOPPING',
      'the instance to have stopped',
    );
    await session.post('boot/start-again', instancePath(instance, '/start'));
    last = await session.poll(
      'boot/poll',
      instance,
      (status) => status !== 'STOPPED' && status !== 'STOPPING',
      'the instance to come ONLINE',
    );
  }
  const shown = last === undefined ? undefined : successOf(last);
  if (textField(shown, 'status') === 'ONLINE') {
    session.online = shown;
    session.lastOnline = shown;
  } else session.whyNotOnline = `the instance did not come ONLINE: ${describe(session, last)}`;
}

function describe({ settings }: Session, last: Awaited<ReturnType<Session['poll']>>): string {
  if (last === undefined)
    return `it was still booting after ${settings.readyTimeoutMs / 1000} s (--ready-timeout-s waits longer)`;
  const status = textField(successOf(last), 'status');
  return status === undefined ? `it read ${last.answer?.status}` : `it became ${status}`;
}
