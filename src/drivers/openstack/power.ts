import type { ObservedMachine, OwnerRef, Step } from '../../orchestrator/model/platform-driver.ts';
import { done, type Failure, failed, pending } from '../../platform-model/steps.ts';
import type { Server } from './api.ts';
import { lockedServer, notDone } from './destroy.ts';
import { unlessConflict, unlessWithheld } from './errors.ts';
import { showMachine } from './machines.ts';
import { type Attempt, readAttempt } from './objects.ts';
import { type MachineMethod, type Platform, POLL_MS, waitForServer } from './platform.ts';
import { detailOf, mark, taskOf } from './translate.ts';

interface Own {
  attempt: Attempt;
  server: Server;
}

async function findOwn(platform: Platform, ref: OwnerRef): Promise<Own | Failure> {
  const attempt = await readAttempt(platform, ref);
  const { server } = attempt;
  return server === undefined ? failed('gone', `there is no server of ${ref}`) : { attempt, server };
}

const REBOOT = { reboot: { type: 'HARD' } };
type Actions = Readonly<Record<string, object>>;

/** Nova's action on the way to a state, by the server's status. Nova shuts off only a server that runs. */
const toShutOff: Actions = {
  ACTIVE: { 'os-stop': null },
  ERROR: { 'os-stop': null },
  PAUSED: { unpause: null },
  SUSPENDED: { resume: null },
};
const toOffloaded: Actions = {
  ACTIVE: { shelve: null },
  SHUTOFF: { shelve: null },
  PAUSED: { shelve: null },
  SUSPENDED: { shelve: null },
  SHELVED: { shelveOffload: null },
  ERROR: { 'os-stop': null },
};
const toRunning: Actions = {
  SHUTOFF: { 'os-start': null },
  PAUSED: { unpause: null },
  SUSPENDED: { resume: null },
  SHELVED: { unshelve: null },
  SHELVED_OFFLOADED: { unshelve: null },
  ERROR: REBOOT,
};

/** Sends the action for the server's status, by its id; the cookie names it once it was accepted. */
async function act(
  { api }: Platform,
  server: Server,
  actions: Actions,
  cookie: string,
): Promise<Step<never>> {
  const { id, status } = server;
  const action = actions[status];
  if (taskOf(server) !== undefined) return waitForServer(cookie, server);
  if (status === 'VERIFY_RESIZE' || status === 'RESCUE')
    return failed('conflict', `${detailOf(server)}: an operator of the cloud must end that first`);
  if (action === undefined) return waitForServer(cookie, server);
  const [name = ''] = Object.keys(action);
  if (cookie === name) return notDone(server, name);
  const answer = await unlessConflict(api.act('compute', `/servers/${id}`, action));
  if (answer === undefined && server.locked) return lockedServer(server);
  return pending(answer === undefined ? 'again' : name, POLL_MS);
}

/** Shelves a machine whose offer releases its unit at a stop, and shuts others off. A shelved server keeps its disk. */
export const stopMachine: MachineMethod<'stop'> = async (platform, ref, cookie) => {
  const found = await findOwn(platform, ref);
  if ('outcome' in found) return found;
  const { server, attempt } = found;
  const { status } = server;
  const releases = server.metadata?.[mark.onStop] === 'release';
  const isOff =
    status === 'SHELVED_OFFLOADED' ||
    (status === 'SHELVED' && (!releases || cookie === 'shelved')) ||
    (status === 'SHUTOFF' && !releases);
  if (isOff && taskOf(server) === undefined) return done(await showMachine(platform, ref, server, attempt));
  const sent = act(platform, server, releases ? toOffloaded : toShutOff, cookie ?? 'stop');
  // Most clouds offload at once. Where they do not, only an administrator may: then its host keeps the machine.
  const step = status === 'SHELVED' ? await unlessWithheld(sent) : await sent;
  return step ?? pending('shelved', POLL_MS);
};

export const startMachine: MachineMethod<'start'> = async (platform, ref, cookie) => {
  const found = await findOwn(platform, ref);
  if ('outcome' in found) return found;
  const { server } = found;
  const { status } = server;
  if (taskOf(server) === undefined) {
    if (status === 'ACTIVE') return running(platform, ref, found, cookie ?? 'start');
    // Nova finds no host after it has accepted the request: the server is as before.
    if (status.startsWith('SHELVED') && cookie === 'unshelve')
      return failed(
        'capacity',
        `Nova did not unshelve the server ${server.id}: see \`openstack server event list ${server.id}\``,
      );
    if (status === 'ERROR' && cookie === 'reboot') return failed('boot_failed', detailOf(server), 'certain');
  }
  return act(platform, server, toRunning, cookie ?? 'start');
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

/** Restarts once per id, which is recorded in the metadata first. A reboot without an answer is sent again. */
export const restartMachine: MachineMethod<'restart'> = async (platform, ref, id, cookie) => {
  const found = await findOwn(platform, ref);
  if ('outcome' in found) return found;
  const { server } = found;
  const { status } = server;
  const record = (is: 'open' | 'done') =>
    platform.api.addMetadata('compute', `/servers/${server.id}`, { [mark.restart]: `${id} ${is}` });
  const noted = server.metadata?.[mark.restart];
  const isOpen = noted === `${id} open`;
  const isBusy = taskOf(server) !== undefined;
  if (isOpen && (isBusy || status === 'REBOOT' || status === 'HARD_REBOOT'))
    return waitForServer('reboot', server);
  if (noted === `${id} done` && status === 'ACTIVE') return running(platform, ref, found, 'done');
  const canReboot = status === 'ACTIVE' || (isOpen && status === 'ERROR');
  if (noted === `${id} done` || isBusy || !canReboot) return failed('conflict', 'it does not run');
  if (!isOpen) await record('open');
  else if (cookie === 'reboot') {
    if (status === 'ERROR') return failed('boot_failed', detailOf(server), 'certain');
    await record('done');
    return running(platform, ref, found, 'done');
  }
  return act(platform, server, { ACTIVE: REBOOT, ERROR: REBOOT }, 'restart');
};
