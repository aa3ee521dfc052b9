import { span, type Tone } from '../../../operators/console/parts.ts';
import type { AlarmRecord } from '../../model/alarm.ts';
import type { HistoryEvent, PlatformCall } from '../../model/history.ts';
import type { InstanceRecord } from '../../model/records.ts';
import type { Work } from '../../model/work.ts';
import { keptUntil } from '../../operate/views/instances.ts';
import { remedyOf } from './alarms.ts';

/** The data about one instance. */
export interface Known {
  record: InstanceRecord;
  work: Work | null;
  events: readonly HistoryEvent[];
  alarms: readonly AlarmRecord[];
  /** Since when its platform is not trusted, in milliseconds since the epoch. Null: it is trusted. */
  downSince: number | null;
}

/** Why an instance is in its state, and what to do. */
export interface Diagnosis {
  tone: Tone;
  headline: string;
  because: string[];
  todo: string[];
}

/** The meaning of a proof over SSH that failed at a step, and what to check. */
const SSH_STEPS: Readonly<Record<string, readonly [means: string, todo: string]>> = {
  connect: [
    'Nothing accepts a connection at its public address',
    'Try nc -vz with its address and port from this server: a firewall, a port forward that is missing, or a machine that has not booted.',
  ],
  banner: [
    'Something accepts the connection, but no SSH server answers there',
    'Look at the console of the machine: sshd has not started, or the port forward leads to another program.',
  ],
  handshake: [
    'An SSH server answers, but the handshake fails',
    'Look at the console of the machine for sshd: missing host keys, or a version that offers no algorithm in common.',
  ],
  host_key: [
    'The machine at its address has another host key than this instance',
    'Another machine has its address or its port forward. Look which one has it on the platform, and correct the forward.',
  ],
  auth: [
    'SSH answers and refuses a key of the tenant',
    'The keys were not injected: look at cloud-init in the console of the machine, and at the image and its user name in the catalog.',
  ],
};

/** The steps of work in words. */
const STEP_WORDS: Readonly<Record<string, string>> = {
  create: 'make the machine',
  verify: 'prove that its SSH answers',
  stop: 'stop the machine',
  start: 'start the machine',
  restart: 'restart the machine',
  destroy: 'remove the machine, and prove that it is gone',
  observe: 'read the machine, since something differs',
  attach: 'attach or detach volumes',
  hold: 'keep the machine for you',
  release: 'keep the unit of a lost machine, then sell it again',
  resize: 'make the volume larger',
};

export function wordsOfStep(kind: string): string {
  return STEP_WORDS[kind] ?? kind;
}

/** Diagnoses an instance from its row, its open step and its history, for the operator on call. */
export function diagnose(known: Known, now: number): Diagnosis {
  const { record, work, downSince } = known;
  if (work?.isHeld === true) return held(known);
  if (downSince !== null && (work !== null || record.status !== 'DESTROYED'))
    return frozen(known, downSince, now);
  if (record.status === 'ERROR') return failed(known, now);
  if (work === null) return resting(known);
  return underWay(known, work, now);
}

function held({ record: { platform } }: Known): Diagnosis {
  return {
    tone: 'bad',
    headline: 'Held: the platform no longer shows its machine, and too many were lost at once',
    because: [
      `More machines of ${platform} are missing than may be lost in a while. Such an answer is more often wrong than true, so this instance keeps its state.`,
    ],
    todo: [
      'Compare with the platform’s own list. A wrong project or key looks just like a loss; correct it, and the instance goes on as before.',
      'Only if the machines are really gone: accept the losses on the page of the platform, or by `berth losses accept`.',
    ],
  };
}

function frozen({ record, work }: Known, since: number, now: number): Diagnosis {
  const waits = work === null ? 'Nothing is open for it' : `To ${wordsOfStep(work.kind)} waits`;
  return {
    tone: 'bad',
    headline: `Its platform ${record.platform} cannot be believed for ${span(now - since)}`,
    because: [
      `${waits} until the platform answers and can be believed again. Deadlines are moved by as much.`,
    ],
    todo: [
      'See the page of the platform for its own words, and mend the network, the credentials or the platform.',
    ],
  };
}

function failed(known: Known, now: number): Diagnosis {
  const { record, work, events, alarms } = known;
  const end = events.findLast(({ toStatus }) => toStatus === 'ERROR');
  const ssh = lastSsh(events);
  const because = [record.error ?? 'No reason was kept.'];
  if (end?.detail !== null && end?.detail !== undefined && end.detail !== record.error)
    because.push(`The platform’s words: ${end.detail}`);
  const todo = ssh === undefined ? [] : toSshTodo(ssh, because);
  todo.push(tellLeft(known, now));
  const isFailing = alarms.some(({ kind }) => kind === 'step_failing');
  if (isFailing && work?.lastError) todo.push(`The removal fails: ${work.lastError}`);
  return { tone: 'bad', headline: 'It failed', because, todo };
}

/** What is left of a failed instance. */
function tellLeft({ work, alarms }: Known, now: number): string {
  if (alarms.some(({ kind }) => kind === 'orphan_machine'))
    return 'Its machine is on the platform again, and Berth removes nothing. `berth orphans adopt` makes it a new instance, `berth instances rm` removes both.';
  if (work === null)
    return 'Nothing is left of it on the platform. Its owner deletes the row; it costs nothing.';
  if (work.kind === 'release')
    return `Its machine is gone. Its unit is not sold for another ${span(Math.max(0, (work.deadlineAt ?? now) - now))}, in case the machine turns up again.`;
  if (work.kind !== 'hold') return 'What is left of it on the platform is being removed.';
  const until = keptUntil(work);
  if (until === null)
    return 'Its machine stays, and its unit is not sold, until its owner deletes it. “Release” removes it at once.';
  const rest = until <= now ? 'is removed now' : `is kept for you for another ${span(until - now)}`;
  return `Its machine ${rest}, and its unit is not sold meanwhile. “Release” removes it at once.`;
}

function resting({ record: { status }, events, alarms }: Known): Diagnosis {
  const isTransient = status === 'PROVISIONING' || status === 'STOPPING' || status === 'DESTROYING';
  if (isTransient)
    return {
      tone: 'bad',
      headline: `It is ${status}, and no step of work is open for it`,
      because: ['Such a row has a step that ends its state. Without one it stays as it is.'],
      todo: ['Read it from the platform again by “try now”, and search the log for its id.'],
    };
  if (alarms.length > 0)
    return {
      tone: 'bad',
      headline: `It is ${status}, and an alarm stands`,
      because: alarms.map(({ text }) => text),
      todo: alarms.map(({ kind }) => remedyOf(kind)),
    };
  const problem = status === 'STOPPED' ? whyStartFailed(events) : undefined;
  return {
    tone: status === 'ONLINE' ? 'good' : 'none',
    headline:
      status === 'ONLINE' ? 'All is well: nothing is to be done' : `It is ${status}: nothing is to be done`,
    because: problem === undefined ? [] : [`The last start failed: ${problem}`],
    todo: [],
  };
}

/** The cause in the platform's words. Undefined: the start did not fail. A failed start is followed by a stop. */
function whyStartFailed(events: readonly HistoryEvent[]): string | undefined {
  const last = events.findLast(({ cause }) => cause !== 'stop');
  if (last?.cause !== 'start') return undefined;
  return last.detail ?? last.calls.findLast(({ call }) => call === 'start')?.detail;
}

function underWay({ events, alarms }: Known, work: Work, now: number): Diagnosis {
  const failing = alarms.find(({ kind }) => kind === 'step_failing');
  const because: string[] = [];
  if (work.lastError !== null) because.push(`The last try: ${work.lastError}`);
  if (work.notBefore > now) because.push(`The next try is in ${span(work.notBefore - now)}.`);
  if (work.deadlineAt !== null)
    because.push(
      work.deadlineAt > now
        ? `It fails unless it is done in ${span(work.deadlineAt - now)}.`
        : `Its time was up ${span(now - work.deadlineAt)} ago: the next conclusive answer ends it.`,
    );
  const ssh = work.kind === 'verify' ? lastSsh(events) : undefined;
  const todo = ssh === undefined ? [] : toSshTodo(ssh, because);
  if (failing !== undefined && todo.length === 0) todo.push(...(REMEDIES[work.kind] ?? [MEND]));
  const step = `“${work.kind}”, to ${wordsOfStep(work.kind)}`;
  return {
    tone: failing === undefined ? (work.lastError === null ? 'busy' : 'wait') : 'bad',
    headline: failing ? `Stuck at ${step}: ${work.attempt} tries have failed` : `Under way: ${step}`,
    because,
    todo,
  };
}

const MEND = 'Mend what the last try names; the step goes on by itself. “Try now” saves the wait.';
const REMEDIES: Readonly<Partial<Record<Work['kind'], readonly string[]>>> = {
  destroy: [
    'The platform does not prove that the machine, its disk and its ports are gone. Remove there what is left of its owner ref; Berth sees it at the next try.',
    '“Try now” saves the wait.',
  ],
  create: [
    'Mend what the last try names: capacity, quota, image or credentials of the platform. The step goes on by itself.',
  ],
};

/** The last proof over SSH, if it failed. */
function lastSsh(events: readonly HistoryEvent[]): PlatformCall | undefined {
  const call = events.flatMap(({ calls }) => calls).findLast((one) => one.call === 'ssh');
  return call?.outcome === 'proved' ? undefined : call;
}

function toSshTodo({ outcome, detail }: PlatformCall, because: string[]): string[] {
  const known = SSH_STEPS[outcome];
  if (known === undefined) return [];
  const [means, todo] = known;
  because.push(`${means}${detail === undefined ? '' : ` (${detail})`}.`);
  return [todo];
}
