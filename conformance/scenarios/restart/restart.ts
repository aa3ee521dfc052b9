import { instancePath, volumePath } from '../../contract/paths.ts';
import { type JsonObject, stringField } from '../../text/json.ts';
import { isSuccess, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { requirePrimary, type Scenario } from '../scenario.ts';
import type { Instance, Session } from '../session.ts';
import { createVolume, pollAvailable, pollGone, type Volume } from '../volumes/volume-steps.ts';
import { placeOf } from '../volumes/volumes.ts';
import type { RestartTarget } from './restart-target.ts';

/** Restarts the target while an instance of the run exists, and reads everything before and after it. */
export const restart: Scenario = {
  id: 'restart',
  level: 'lifecycle',
  title: 'restarts the target, and reads what was there before',
  after: ['create'],
  buys: [{ type: 'volume', offer: 'restart', what: 'a volume that exists during the restart' }],
  async run(session) {
    if (session.restartTarget === undefined) {
      const reason = 'the run was given no command that restarts the target';
      return session.skip(['restart'], reason, 'a restart of the target (--restart-command)');
    }
    const instance = requirePrimary(session, 'restart');
    if (instance === undefined) return;
    const volume = await volumeFor(session);
    const shown = await readAll(session, 'restart/before', instance, volume);
    const isBack = await restartAndWait(session, session.restartTarget);
    if (isBack) {
      const now = await readAll(session, 'restart/after', instance, volume);
      await logIn(session, shown, now);
    }
    if (volume === undefined) return;
    await session.delete('restart/volume-delete', volumePath(volume));
    await pollGone(session, 'restart/volume-gone', volume);
  },
};

async function volumeFor(session: Session): Promise<Volume | undefined> {
  const steps = ['restart/before/volume', 'restart/after/volume'];
  const place = session.level === 'full' ? placeOf(session) : undefined;
  if (place === undefined) {
    const reason =
      session.level === 'full' ? 'GET /volumes/locations lists no location' : `this run is ${session.level}`;
    session.skip(steps, reason, session.level === 'full' ? 'storage tier' : 'a volume, at level full');
    return undefined;
  }
  const volume = await createVolume(session, 'restart/volume', place);
  if (volume !== undefined && (await pollAvailable(session, 'restart/volume-poll', volume))) return volume;
  session.skip(steps, 'no volume came to be AVAILABLE');
  return volume;
}

/** Returns the read of the instance, if it was answered. */
async function readAll(
  session: Session,
  step: string,
  instance: Instance,
  volume: Volume | undefined,
): Promise<JsonObject | undefined> {
  const read = await readOnceUp(session, `${step}/instance`, instancePath(instance));
  await readOnceUp(session, `${step}/list`, '/instances');
  if (volume !== undefined) await readOnceUp(session, `${step}/volume`, volumePath(volume));
  await readOnceUp(session, `${step}/configurations`, '/configurations');
  return successOf(read);
}

/** How often a read that is answered 5xx is sent: some parts of a server start later than others. */
const MOST_READS = 5;

async function readOnceUp(session: Session, step: string, path: string): Promise<Exchange> {
  for (let count = 1; ; count++) {
    const read = await session.get(step, path);
    if ((statusOf(read) ?? 500) < 500 || count === MOST_READS) return read;
    await session.sleep(session.settings.pollIntervalMs);
  }
}

/** Returns whether the target was restarted, and answers again. */
async function restartAndWait(session: Session, restartTarget: RestartTarget): Promise<boolean> {
  session.waitsFor('the command that restarts the target');
  const sentAt = session.now();
  const outcome = await restartTarget(session.signal);
  session.addRestart({ kind: 'restart', sentAt, endedAt: session.now(), ...outcome });
  if (outcome.exitCode !== 0) {
    const lastLine = outcome.output.trimEnd().split('\n').at(-1);
    const how = outcome.message ?? `ended with exit code ${outcome.exitCode}`;
    const why = `the command of --restart-command ${how}${lastLine ? `: ${lastLine}` : ''}`;
    session.skip(['restart/after', 'restart/login'], why);
    return false;
  }
  session.waitsFor('the target to answer after its restart');
  const { readyTimeoutMs, pollIntervalMs } = session.settings;
  const startedAt = session.now();
  while (!isSuccess(await session.get('restart/wait', '/configurations'))) {
    if (session.now() - startedAt >= readyTimeoutMs) {
      const why = `the target did not answer within ${readyTimeoutMs / 1000} s of its restart`;
      session.skip(['restart/after', 'restart/login'], why);
      return false;
    }
    await session.sleep(pollIntervalMs);
  }
  return true;
}

/** Logs in where the instance now says, or where it did before if it is no longer read. */
async function logIn(
  session: Session,
  before: JsonObject | undefined,
  now: JsonObject | undefined,
): Promise<void> {
  if (before === undefined || stringField(before, 'status') !== 'ONLINE')
    return session.skip(
      ['restart/login'],
      'the instance was not ONLINE before the restart',
      'an ONLINE instance at the restart',
    );
  const shown = stringField(now, 'public_ip') === undefined ? before : (now ?? before);
  await session.login('restart/login', shown, 'first');
  await session.login('restart/login', shown, 'second');
}
