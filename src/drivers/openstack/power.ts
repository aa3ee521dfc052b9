import type { ObservedMachine, OwnerRef, Step } from '../../orchestrator/model/platform-driver.ts';
import { done, failed, pending } from '../../platform-model/steps.ts';
import type { Server } from './api.ts';
import { classify, unlessConflict, unlessWithheld } from './errors.ts';
import { showMachine } from './machines.ts';
import { type Attempt, readAttempt } from './objects.ts';
import { type MachineMethod, type Platform, POLL_MS, waitForServer } from './platform.ts';
import { detailOf, mark, taskOf } from './translate.ts';

interface Own {
  attempt: Attempt;
  server: Server;
}

async function findOwn(
  platform: Platform,
  ref: OwnerRef,
): Promise<Own | (Step<never> & { outcome: 'failed' })> {
  const attempt = await readAttempt(platform, ref);
  const { server } = attempt;
  if (server === undefined)
    return failed('gone', `there is no server of ${ref}`) as Step<never> & { outcome: 'failed' };
  return { attempt, server };
}

/** Sends an action by the server's id; `cookie` says that it was accepted. A state that does not allow it is read again. */
async function act({ api }: Platform, { id }: Server, action: object, cookie: string): Promise<Step<never>> {
  const answer = await unlessConflict(api.act('compute', `/servers/${id}`, action));
  return pending(answer === undefined ? 'again' : cookie, POLL_MS);
}

/** Shelves a machine whose offer releases its unit at a stop, and shuts others off. A shelved server keeps its disk. */
export const stopMachine: MachineMethod<'stop'> = async (platform, ref, cookie) => {
  const found = await findOwn(platform, ref);
  if ('outcome' in found) return found;
  const { server, attempt } = found;
  const { status } = server;
  const releases = server.metadata?.[mark.onStop] === 'release';
  const stopped = async () => done(await showMachine(platform, ref, server, attempt));
  if (taskOf(server) !== undefined) return waitForServer(cookie ?? 'stop', server);
  switch (status) {
    case 'SHELVED_OFFLOADED':
      return stopped();
    case 'SHELVED':
      if (!releases || cookie === 'shelved') return stopped();
      return offload(platform, server);
    case 'SHUTOFF':
      return releases ? act(platform, server, { shelve: null }, 'shelve') : stopped();
    case 'ACTIVE':
      return act(
        platform,
        server,
        releases ? { shelve: null } : { 'os-stop': null },
        releases ? 'shelve' : 'stop',
      );
    case 'PAUSED':
    case 'SUSPENDED':
      if (releases) return act(platform, server, { shelve: null }, 'shelve');
      // Nova shuts off only a server that runs.
      return act(platform, server, status === 'PAUSED' ? { unpause: null } : { resume: null }, 'resume');
    case 'ERROR':
      return act(platform, server, { 'os-stop': null }, 'stop');
    case 'VERIFY_RESIZE':
    case 'RESCUE':
      return failed('conflict', `${detailOf(server)}: somebody at the cloud must end that first`);
    default:
      return waitForServer(cookie ?? 'stop', server);
  }
};

/** Most clouds offload at once. Where they do not, only an administrator may: then its host keeps the machine. */
async function offload(platform: Platform, server: Server): Promise<Step<never>> {
  const sent = await unlessWithheld(act(platform, server, { shelveOffload: null }, 'shelve'));
  return sent ?? pending('shelved', POLL_MS);
}

export const startMachine: MachineMethod<'start'> = async (platform, ref, cookie) => {
  const found = await findOwn(platform, ref);
  if ('outcome' in found) return found;
  const { server } = found;
  const { status } = server;
  if (taskOf(server) !== undefined) return waitForServer(cookie ?? 'start', server);
  switch (status) {
    case 'ACTIVE':
      return running(platform, ref, found, cookie ?? 'start');
    case 'SHELVED':
    case 'SHELVED_OFFLOADED': {
      // Nova finds no host after it has accepted the request: the server is as before.
      if (cookie === 'unshelve') return failedUnshelve(platform, server);
      return act(platform, server, { unshelve: null }, 'unshelve');
    }
    case 'SHUTOFF':
      return act(platform, server, { 'os-start': null }, 'start');
    case 'PAUSED':
      return act(platform, server, { unpause: null }, 'resume');
    case 'SUSPENDED':
      return act(platform, server, { resume: null }, 'resume');
    case 'ERROR':
      if (cookie === 'reboot') return failed('boot_failed', detailOf(server), 'certain');
      return act(platform, server, { reboot: { type: 'HARD' } }, 'reboot');
    case 'VERIFY_RESIZE':
    case 'RESCUE':
      return failed('conflict', `${detailOf(server)}: somebody at the cloud must end that first`);
    default:
      return waitForServer(cookie ?? 'start', server);
  }
};

async function running(
  platform: Platform,
  ref: OwnerRef,
  { server, attempt }: Own,
  cookie: string,
): Promise<Step<ObservedMachine>> {
  const machine = await showMachine(platform, ref, server, attempt);
  return machine.power === 'running' ? done(machine) : pending(cookie, POLL_MS);
}

async function failedUnshelve({ api }: Platform, server: Server): Promise<Step<never>> {
  const last = (await api.actions(server.id)).find(({ action }) => action === 'unshelve');
  const detail = server.fault?.message ?? last?.message ?? 'it is shelved as before';
  const code = classify(undefined, detail);
  return failed(
    code === 'quota' ? 'quota' : 'capacity',
    `Nova did not unshelve the server ${server.id}: ${detail}`,
  );
}

const restartMark = (id: string, is: 'open' | 'done'): string => `${id} ${is}`;

/** Restarts once per id, which is recorded in the metadata first. A reboot without an answer is sent again. */
export const restartMachine: MachineMethod<'restart'> = async (platform, ref, id, cookie) => {
  const found = await findOwn(platform, ref);
  if ('outcome' in found) return found;
  const { server } = found;
  const record = (is: 'open' | 'done') =>
    platform.api.make('compute', `/servers/${server.id}/metadata`, 'metadata', {
      [mark.restart]: restartMark(id, is),
    });
  const noted = server.metadata?.[mark.restart];
  const isIdle = taskOf(server) === undefined;
  if (noted === restartMark(id, 'done'))
    return server.status === 'ACTIVE'
      ? running(platform, ref, found, 'done')
      : failed('conflict', 'it does not run');
  if (noted !== restartMark(id, 'open')) {
    if (server.status !== 'ACTIVE' || !isIdle) return failed('conflict', 'it does not run');
    await record('open');
  } else if (!isIdle || server.status === 'REBOOT' || server.status === 'HARD_REBOOT')
    return waitForServer('sent', server);
  else if (server.status === 'ACTIVE' && cookie === 'sent') {
    await record('done');
    return running(platform, ref, found, 'done');
  } else if (server.status !== 'ACTIVE' && server.status !== 'ERROR')
    return failed('conflict', 'it does not run');
  else if (server.status === 'ERROR' && cookie === 'sent')
    return failed('boot_failed', detailOf(server), 'certain');
  return act(platform, server, { reboot: { type: 'HARD' } }, 'sent');
};
