import { done, failed } from '../../platform-model/steps.ts';
import type { Instance } from './api.ts';
import { reach, showMachine } from './endpoints.ts';
import { findOwn, note } from './finder.ts';
import { claimGpus, releaseGpus } from './gpus.ts';
import { failureOf, operationOf, operationsOn, setPower, underWay } from './operations.ts';
import { lacksRoom } from './placement.ts';
import type { MachineMethod } from './platform.ts';
import { isFrozen, isRunning, isStopped, mark } from './translate.ts';

/** Time for a machine to shut down before it is switched off, in seconds. */
const SHUTDOWN_S = 30;

/** Stops one run of the machine. If it was started again since, the new run gets its own shutdown request. */
export const stopMachine: MachineMethod<'stop'> = async (platform, ref, cookie) => {
  const found = await findOwn(platform, ref);
  if ('outcome' in found) return found;
  const { instance } = found;
  if (isStopped(instance)) {
    if (await releaseGpus(platform, instance)) return underWay('stopped', 'release GPUs');
    return done(await showMachine(platform, instance));
  }
  const operation = await operationOf(platform.api, cookie);
  if (operation !== undefined && operation.status_code < 200) return underWay(cookie ?? 'stop');
  const run = runOf(instance);
  const [kind, , ...meant] = cookie?.split(':') ?? [];
  const isSameRun = meant.length === 0 || meant.join(':') === run;
  // It did not shut down in time, so it is switched off.
  const isLate = operation !== undefined && operation.status_code >= 400;
  const problem = await failureOf(platform.api, cookie, 'force');
  if (problem !== undefined) return problem;
  // A frozen machine does not receive a shutdown request.
  const isForced = isFrozen(instance) || (isSameRun && (isLate || kind === 'force'));
  const now = await platform.api.instance(instance.name);
  if (now === undefined || runOf(now) !== run) return underWay('stop');
  const body = isForced
    ? { action: 'stop', force: true, timeout: -1 }
    : { action: 'stop', timeout: SHUTDOWN_S };
  return setPower(platform, instance.name, body, isForced ? 'force' : 'stop', `:${run}`);
};

export const startMachine: MachineMethod<'start'> = async (platform, ref, cookie) => {
  const found = await findOwn(platform, ref);
  if ('outcome' in found) return found;
  const { instance } = found;
  const order = (action: string, kind: string) => setPower(platform, instance.name, { action }, kind);
  if (isRunning(instance)) return reach(platform, instance);
  if (isFrozen(instance)) return order('unfreeze', 'resume');
  if (!isStopped(instance)) return underWay(cookie ?? 'start');
  const problem = await failureOf(platform.api, cookie, 'start');
  if (problem !== undefined) return problem;
  const step = await platform.alone(async () => {
    const lack = cookie === null ? await lacksRoom(platform, instance) : undefined;
    return lack ?? claimGpus(platform, instance);
  });
  return step ?? order('start', 'start');
};

/** Restarts once per id. The start time of the current run is recorded first. */
export const restartMachine: MachineMethod<'restart'> = async (platform, ref, id, cookie) => {
  const found = await findOwn(platform, ref);
  if ('outcome' in found) return found;
  const { instance } = found;
  const { name } = instance;
  const noted = parseRestart(instance.config[mark.restart]);
  const since = instance.state?.started_at ?? '';
  const record = (value: Restart) => note(platform, instance, { [mark.restart]: JSON.stringify(value) });
  const reset = { action: 'restart', force: true, timeout: -1 };
  if (noted?.id !== id) {
    if (!isRunning(instance)) return failed('conflict', 'it does not run');
    if (!(await record({ id, since, isDone: false }))) return underWay('restart');
    return setPower(platform, name, reset, 'restart');
  }
  if (noted.isDone)
    return isRunning(instance) ? reach(platform, instance) : failed('conflict', 'it does not run');
  if (isRunning(instance) && since !== noted.since) {
    const step = await reach(platform, instance);
    if (step.outcome !== 'done' || (await record({ ...noted, isDone: true }))) return step;
    return underWay('restart');
  }
  const operation =
    (await operationOf(platform.api, cookie)) ?? (await operationsOn(platform.api, name)).at(0);
  if (operation !== undefined && operation.status_code < 200) return underWay(`restart:${operation.id}`);
  if (![isRunning, isFrozen, isStopped].some((is) => is(instance))) return underWay('restart');
  return setPower(platform, name, isStopped(instance) ? { action: 'start' } : reset, 'restart');
};

/** Identifies a run of the machine by its start time. */
function runOf({ state }: Instance): string {
  return state?.started_at ?? '';
}

interface Restart {
  id: string;
  since: string;
  isDone: boolean;
}

function parseRestart(text: string | undefined): Restart | undefined {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
