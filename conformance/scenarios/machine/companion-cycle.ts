import { instancePath, volumePath } from '../../contract/paths.ts';
import { type JsonObject, stringField } from '../../text/json.ts';
import { answerOf, isSuccess, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { stopOrStart } from '../instances/stop-or-start.ts';
import { NOT_STOPPABLE } from '../instances/stop-start.ts';
import type { Instance, Session } from '../session.ts';
import { pollGone, type Volume } from '../volumes/volume-steps.ts';
import { LIST_FILE } from './first-boot.ts';
import { LIST_DISKS } from './guest.ts';
import { script } from './printed.ts';

/**
 * Stops the second instance, starts it, and stops it again; with the volume that is attached to it, if any. Returns whether
 * it reads STOPPED at the end.
 */
export async function cycleCompanion(
  session: Session,
  { instance, shown, volume }: { instance: Instance; shown: JsonObject; volume: Volume | undefined },
): Promise<boolean> {
  // The newest mounts are last; only the first 4 KiB of an output are kept.
  const mounts = 'tail -c 3000 /proc/mounts';
  const command = script({ list: `cat ${LIST_FILE}`, disks: LIST_DISKS, mounts });
  if (volume !== undefined) await session.login('companion/before-stop', shown, 'first', { command });
  const off = await stopOrStart(session, 'companion/stop', instance, 'stop');
  if (statusIn(off) !== 'STOPPED') {
    const steps = ['stopped', 'start', 'started', 'destroy-stopped'].map((step) => `companion/${step}`);
    const { reason, capability } = NOT_STOPPABLE;
    if (off !== undefined && statusOf(off) === 409) session.skip(steps, reason, capability);
    else session.skip(steps, `the second instance was asked to stop and is ${statusIn(off)}`);
    return false;
  }
  if (volume !== undefined) await whileStopped(session, volume);
  const back = await stopOrStart(session, 'companion/start', instance, 'start');
  if (back === undefined || statusIn(back) !== 'ONLINE') {
    const capability = back && statusOf(back) === 409 ? 'resuming a stopped instance' : undefined;
    session.skip(
      ['companion/started'],
      `the second instance, asked to start, is ${statusIn(back)}`,
      capability,
    );
    return statusIn(await session.get('companion/start-read', instancePath(instance))) === 'STOPPED';
  }
  // What is done at each boot, and the mounts, may come after SSH.
  await session.sleep(session.settings.pollIntervalMs);
  if (volume !== undefined && volume.entry.state !== 'gone')
    await session.get('companion/started/read', volumePath(volume));
  await session.login('companion/started/login', successOf(back) ?? shown, 'first', { command });
  return statusIn(await stopOrStart(session, 'companion/stop-again', instance, 'stop', 2)) === 'STOPPED';
}

/** The status in a read, or how it was answered. */
function statusIn(read: Exchange | undefined): string {
  return read === undefined ? 'not there yet' : (stringField(successOf(read), 'status') ?? answerOf(read));
}

/** Reads the volume, and deletes it if it reads ATTACHED, which must be refused. */
async function whileStopped(session: Session, volume: Volume): Promise<void> {
  const read = await session.get('companion/stopped/before', volumePath(volume));
  if (statusIn(read) !== 'ATTACHED') {
    const reason = `the volume reads ${statusIn(read)} while its instance is STOPPED`;
    return session.skip(['companion/stopped/delete', 'companion/stopped/read'], reason);
  }
  const asked = await session.delete('companion/stopped/delete', volumePath(volume));
  await session.get('companion/stopped/read', volumePath(volume));
  if (!isSuccess(asked) || !(await pollGone(session, 'companion/stopped/poll-gone', volume))) return;
  const reason = 'the volume was deleted while its instance was STOPPED';
  session.skip(['companion/started/read', 'companion/released'], reason);
}
