import { z } from 'zod';
import type { AlarmRecord } from '../../../operator-kit/alarms/model.ts';
import { span } from '../../../operator-kit/views/values.ts';
import type { HistoryEvent, PlatformCall } from '../../model/history.ts';
import { markOf } from '../../model/marks.ts';
import type { InstanceRecord } from '../../model/records.ts';
import type { Reader } from '../../model/store.ts';
import { isOverdue, type Work, type WorkProgress } from '../../model/work.ts';

/** The data about one instance. */
export interface Known {
  record: InstanceRecord;
  work: Work | null;
  events: readonly HistoryEvent[];
  alarms: readonly AlarmRecord[];
  /** Since when its platform is not trusted, in milliseconds since the epoch. Null if it is trusted. */
  downSince: number | null;
}

export const diagnosisSchema = z.object({
  tone: z.enum(['good', 'busy', 'wait', 'bad', 'none']).meta({
    description: 'Good, in progress, waiting, bad or neutral.',
  }),
  headline: z.string(),
  because: z.array(z.string()).meta({ description: 'Why.' }),
  todo: z.array(z.string()).meta({ description: 'What to do; empty: no action needed.' }),
});

/** Why an instance is in its state, and what to do. */
export type Diagnosis = z.output<typeof diagnosisSchema>;

/** Reads what a diagnosis of an instance needs besides its row, its work and its history. */
export async function readTrouble(
  { alarms, marks }: Pick<Reader, 'alarms' | 'marks'>,
  { id, ownerRef, platform }: InstanceRecord,
): Promise<Pick<Known, 'alarms' | 'downSince'>> {
  const [all, downSince] = await Promise.all([
    alarms.list(),
    marks.get(markOf(platform, 'platform_down_since')),
  ]);
  return { alarms: all.filter(({ subject }) => subject === id || subject === ownerRef), downSince };
}

/**
 * Until when the machine of a failed instance is kept for the operator, in milliseconds since the epoch. Null if it is
 * not kept, or kept until a request.
 */
export function keptUntil({ kind, deadlineAt }: Pick<Work, 'kind' | 'deadlineAt'>): number | null {
  return kind === 'hold' ? deadlineAt : null;
}

/** The meaning of a proof over SSH that failed at a step, and what to check. */
const SSH_STEPS: Readonly<Record<string, readonly [means: string, todo: string]>> = {
  connect: [
    'No connection is accepted at its public address',
    'Run nc -vz with its address and port from this server. Likely causes: a firewall, a missing port forward, or a machine that has not booted.',
  ],
  banner: [
    'The connection is accepted, but no SSH server answers',
    'Check the console of the machine: sshd has not started, or the port forward leads to another program.',
  ],
  handshake: [
    'An SSH server answers, but the handshake fails',
    'Check sshd in the console of the machine: missing host keys, or no algorithm in common.',
  ],
  host_key: [
    'The machine at its address has another host key than this instance',
    'Another machine has its address or its port forward. Find out on the platform which one, and correct the forward.',
  ],
  auth: [
    'SSH answers, but refuses one of the tenant’s keys',
    'The keys were not injected: check cloud-init in the console of the machine, and the image and its user name in the catalog.',
  ],
};

/** The steps of work in words. */
const STEP_WORDS: Readonly<Record<string, string>> = {
  create: 'create the machine',
  verify: 'verify its SSH',
  stop: 'stop the machine',
  start: 'start the machine',
  restart: 'restart the machine',
  destroy: 'remove the machine and confirm that it is gone',
  observe: 'read the machine, because its state differs',
  attach: 'attach or detach volumes',
  hold: 'keep the machine for you',
  release: 'reserve the unit of a lost machine, then free it',
  resize: 'make the volume larger',
};

export function wordsOfStep(kind: string): string {
  return STEP_WORDS[kind] ?? kind;
}

/** A phase of the platform in words: since when, and until when it should take. */
function wordsOfProgress(progress: WorkProgress, now: number): string {
  const { phase, since, deadlineAt } = progress;
  const begun = `“${phase}” for ${span(Math.max(0, now - since))}`;
  if (isOverdue(progress, now)) return `${begun}, overdue for ${span(now - progress.deadlineAt)}`;
  return deadlineAt === undefined ? begun : `${begun}, due in ${span(deadlineAt - now)}`;
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
    headline: 'Held: its machine is missing from the platform, and too many were lost at once',
    because: [
      `More machines of ${platform} are missing than the cap on losses allows. Such a listing is usually wrong, so this instance keeps its state.`,
    ],
    todo: [
      'Compare with the platform’s own list. A wrong project or key looks the same as a loss; correct it, and the instance continues as before.',
      'Only if the machines are really gone: accept the losses with `berth losses accept`.',
    ],
  };
}

function frozen({ record, work }: Known, since: number, now: number): Diagnosis {
  const waits =
    work === null
      ? 'It has no open step, and nothing changes'
      : `The step to ${wordsOfStep(work.kind)} waits`;
  return {
    tone: 'bad',
    headline: `Its platform ${record.platform} has been frozen for ${span(now - since)}`,
    because: [
      `${waits} until the platform answers and its listing is trusted again. Deadlines are extended by the same time.`,
    ],
    todo: ['See `berth alarms ls` for its error, and fix the network, the credentials or the platform.'],
  };
}

function failed(known: Known, now: number): Diagnosis {
  const { record, work, events, alarms } = known;
  const end = events.findLast(({ toStatus }) => toStatus === 'ERROR');
  const ssh = lastSsh(events);
  const because = [record.error ?? 'No reason was recorded.'];
  if (end?.detail !== null && end?.detail !== undefined && end.detail !== record.error)
    because.push(`Reported by the platform: ${end.detail}`);
  const todo = ssh === undefined ? [] : toSshTodo(ssh, because);
  todo.push(tellLeft(known, now));
  const isFailing = alarms.some(({ kind }) => kind === 'step_failing');
  if (isFailing && work?.lastError) todo.push(`The removal fails: ${work.lastError}`);
  return { tone: 'bad', headline: 'It failed', because, todo };
}

/** Words what is left of a failed instance. */
function tellLeft({ work, alarms }: Known, now: number): string {
  if (alarms.some(({ kind }) => kind === 'orphan_machine'))
    return 'Its machine is on the platform again, and Berth does not remove it. `berth orphans adopt` makes it a new instance; `berth instances rm` removes both.';
  if (work === null)
    return 'The platform has nothing left of it, and it costs nothing. Its owner can delete the row.';
  if (work.kind === 'release')
    return `Its machine is gone. Its unit is not sold for another ${span(Math.max(0, (work.deadlineAt ?? now) - now))}, in case the machine reappears.`;
  if (work.kind !== 'hold') return 'Its remains on the platform are being removed.';
  const until = keptUntil(work);
  if (until === null)
    return 'Its machine stays, and its unit is not sold, until its owner deletes it. `berth instances release` removes it at once.';
  const rest = until <= now ? 'is removed now' : `is kept for you for another ${span(until - now)}`;
  return `Its machine ${rest}, and its unit is not sold meanwhile. \`berth instances release\` removes it at once.`;
}

function resting({ record: { status }, events, alarms }: Known): Diagnosis {
  const isTransient = status === 'PROVISIONING' || status === 'STOPPING' || status === 'DESTROYING';
  if (isTransient)
    return {
      tone: 'bad',
      headline: `It is ${status}, but has no open step`,
      because: ['This status always needs an open step. Without one it never changes.'],
      todo: ['Read it from the platform again with `berth instances retry`, and search the log for its id.'],
    };
  if (alarms.length > 0)
    return {
      tone: 'bad',
      headline: `It is ${status} and has an open alarm`,
      because: [],
      todo: alarms.map(({ text }) => text),
    };
  const problem = status === 'STOPPED' ? whyStartFailed(events) : undefined;
  return {
    tone: status === 'ONLINE' ? 'good' : 'none',
    headline: status === 'ONLINE' ? 'OK: no action needed' : `It is ${status}: no action needed`,
    because: problem === undefined ? [] : [`The last start failed: ${problem}`],
    todo: [],
  };
}

/**
 * Why the last start failed, in the platform's words. Undefined if it did not fail. A failed start is followed by a
 * stop.
 */
function whyStartFailed(events: readonly HistoryEvent[]): string | undefined {
  const last = events.findLast(({ cause }) => cause !== 'stop');
  if (last?.cause !== 'start') return undefined;
  return last.detail ?? last.calls.findLast(({ call }) => call === 'start')?.detail;
}

function underWay({ events, alarms }: Known, work: Work, now: number): Diagnosis {
  const failing = alarms.find(({ kind }) => kind === 'step_failing');
  const because: string[] = [];
  if (work.progress !== null) because.push(`The platform reports ${wordsOfProgress(work.progress, now)}.`);
  if (work.lastError !== null) because.push(`Last attempt: ${work.lastError}`);
  if (work.notBefore > now) because.push(`The next try is in ${span(work.notBefore - now)}.`);
  if (work.deadlineAt !== null)
    because.push(
      work.deadlineAt > now
        ? `It fails if it is not done in ${span(work.deadlineAt - now)}.`
        : `Its deadline passed ${span(now - work.deadlineAt)} ago: the next conclusive answer ends it.`,
    );
  const ssh = work.kind === 'verify' ? lastSsh(events) : undefined;
  const todo = ssh === undefined ? [] : toSshTodo(ssh, because);
  if (failing !== undefined && todo.length === 0) todo.push(...(REMEDIES[work.kind] ?? [MEND]));
  const isLate = isOverdue(work.progress, now);
  if (isLate) todo.push('Look on the platform why this phase takes so long. Berth keeps asking.');
  const step = `“${work.kind}”, to ${wordsOfStep(work.kind)}`;
  return {
    tone: failing !== undefined || isLate ? 'bad' : work.lastError === null ? 'busy' : 'wait',
    headline: failing ? `Stuck at ${step}: ${work.attempt} attempts have failed` : `In progress: ${step}`,
    because,
    todo,
  };
}

const MEND =
  'Fix the cause given by the last attempt; the step then continues by itself. `berth instances retry` skips the wait.';
const REMEDIES: Readonly<Partial<Record<Work['kind'], readonly string[]>>> = {
  destroy: [
    'The platform does not show that the machine, its disk and its ports are gone. Remove on the platform whatever still carries its owner ref; the next attempt sees it.',
    '`berth instances retry` skips the wait.',
  ],
  create: [
    'Fix the cause given by the last attempt: capacity, quota, image or credentials of the platform. The step then continues by itself.',
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
