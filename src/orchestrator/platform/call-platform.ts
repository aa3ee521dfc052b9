import type { Clock } from '../../ports/clock.ts';
import { inSlices } from '../../ports/in-slices.ts';
import { EXPECTED_PLAIN_TEXT, isPlainText } from '../../ports/plain-text.ts';
import type { ProbeResult } from '../../ports/ssh-probe.ts';
import { renewalReserveMs } from '../../work/lease-time.ts';
import type { FreeUnits, Inventory, ObservedHost } from '../model/inventory.ts';
import type {
  Call,
  HostAnswers,
  Listing,
  ObservedMachine,
  Placing,
  Presence,
  Progress,
  Step,
  VolumeUse,
} from '../model/platform-driver.ts';
import { cleanText } from '../model/platform-resource.ts';
import type { StepTrace, Telemetry } from '../model/telemetry.ts';
import type { Lease } from '../model/work.ts';
import { type LeaseKeeping, whileLeaseIsKept } from './keep-lease.ts';
import type { PlatformHealth } from './platform-health.ts';

interface Waiting {
  clock: Clock;
  options: { callTimeoutMs: number };
  /** The trace of the step that waits. */
  trace?: StepTrace;
  telemetry?: Telemetry;
}

/** A point where a test may kill the process: before and after each call to the platform, and after each write. */
export type Failpoint = (name: string) => void;

type Caller = Waiting &
  LeaseKeeping & { failpoint: Failpoint; health: Pick<PlatformHealth, 'accepted' | 'refused' | 'isTaken'> };

/** The longest pause that a platform may request. */
const LONGEST_PAUSE_MS = 10 * 60_000;
const DEFAULT_PAUSE_MS = 1_000;
/** The last moment of a `Date`, in milliseconds since the epoch. */
const LAST_DATE_MS = 8_640_000_000_000_000;

/** The step may not call the platform now. It has sent and written nothing, and is claimed again. */
export class NotCalled extends Error {
  override readonly name = 'NotCalled';
}

/**
 * Runs one driver step with a deadline, and aborts it at the deadline. The lease is renewed until the call has ended,
 * so no second call for the resource starts meanwhile. A rejection means an unknown outcome. Refused credentials are
 * reported to the platform's health.
 *
 * @throws {NotCalled} if the call could outlast the lease: another holder could then make a call at the same time. Also
 *   if a server of another database writes to the platform
 * @throws {CallUnderWay} if the lease was lost during the call, or this process stops first
 */
export async function callStep<T>(
  context: Caller,
  lease: Lease,
  call: (limits: Call) => Promise<Step<T>>,
): Promise<Step<T>> {
  const { clock, options, health, failpoint } = context;
  const { resourceId, kind } = lease;
  failpoint(`${kind}:before-call`);
  const sentAt = clock.now();
  // If the local clock is behind, the lease expires earlier than it shows.
  const behindMs = Math.max(0, 0 - (clock.offsetMs?.() ?? 0));
  if (sentAt + behindMs + options.callTimeoutMs + renewalReserveMs(options.leaseMs) > lease.until)
    throw new NotCalled(`the lease ends before a ${kind} would`);
  if (health.isTaken) throw new NotCalled('a server of another database writes to the platform');
  const controller = new AbortController();
  const limits = {
    deadline: sentAt + options.callTimeoutMs,
    fence: lease.fence,
    signal: controller.signal,
  };
  const answering = readAnswer(() => call(limits), sane);
  const inTime = await within(context, answering);
  if (inTime === undefined) controller.abort();
  const answer = inTime ?? (await whileLeaseIsKept(context, lease, answering));
  failpoint(`${kind}:after-call`);
  const step: Step<T> =
    'value' in answer
      ? answer.value
      : { outcome: 'failed', code: 'unknown_outcome', sideEffect: 'possible', detail: answer.problem };
  if (step.outcome !== 'failed') {
    noteCall(context, kind, sentAt, step.outcome);
    health.accepted();
    return step;
  }
  noteCall(context, kind, sentAt, step.code, step.detail);
  if (step.code === 'auth')
    health.refused(resourceId, `the platform refuses our credentials: ${step.detail}`);
  return step;
}

/** Makes one changing call without a lease, with a deadline. Its fence is the current time. */
export function callOnce<T>({ clock, options }: Waiting, call: (limits: Call) => Promise<T>): Promise<T> {
  const now = clock.now();
  const deadline = now + options.callTimeoutMs;
  const controller = new AbortController();
  const timer = clock.setTimer(options.callTimeoutMs, () => controller.abort());
  return call({ deadline, fence: now, signal: controller.signal }).finally(() => timer.cancel());
}

type Unknown = Extract<Presence<unknown>, { answer: 'unknown' }>;

/** Reads from the platform with a deadline. Any failure and any malformed answer is `unknown`, never absence. */
export async function observe<Answer extends Presence<unknown> | Listing<unknown>>(
  context: Waiting,
  call: () => Promise<Answer>,
  name: 'get' | 'list' = 'get',
): Promise<Answer | Unknown> {
  const sentAt = context.clock.now();
  const answer = await answerInTime(context, call, read<Answer>);
  const found = 'value' in answer ? answer.value : { answer: 'unknown' as const, reason: answer.problem };
  noteCall(context, name, sentAt, found.answer, found.answer === 'unknown' ? found.reason : undefined);
  return found;
}

/**
 * Cleans an answer.
 *
 * @throws {Error} if the answer is malformed: a driver may pass on what its platform sent
 */
async function read<Answer extends Presence<unknown> | Listing<unknown>>(
  value: Answer,
): Promise<Answer | Unknown> {
  switch (value.answer) {
    case 'unknown':
      return { ...cleaned<Unknown>(value, ['reason']), ...('hosts' in value && withHosts(value.hosts)) };
    case 'observed':
      return { ...value, value: withRef(value.value) };
    case 'listed':
      return {
        ...value,
        items: await withRefs(value.items),
        ...withHosts(value.hosts),
        ...(value.copies !== undefined && {
          copies: value.copies.map((copy) => cleaned(copy, ['name', 'ref'], ['host'])),
        }),
        ...(value.leftovers !== undefined && {
          leftovers: value.leftovers.map((left) => cleaned(left, ['ref', 'detail'], ['host'])),
        }),
      };
    case 'gone':
      return { ...value, ...withHosts(value.hosts) };
    default:
      throw new Error('the driver returned an invalid answer');
  }
}

/**
 * Cleans the host names.
 *
 * @throws {Error} if the answering hosts are not listed; then nothing is proved gone
 */
function withHosts(hosts: HostAnswers | undefined): { hosts?: HostAnswers } {
  if (hosts === undefined) return {};
  const { answered, silent } = hosts;
  return { hosts: { answered: answered.map(cleanText), silent: silent.map(cleanText) } };
}

/** Reads the free capacity with a deadline. Any failure and any malformed figure is `unknown`. */
export async function askInventory(context: Waiting, call: () => Promise<Inventory>): Promise<Inventory> {
  const sentAt = context.clock.now();
  const answer = await answerInTime(context, call, (inventory): Inventory => {
    if (inventory.answer === 'unknown') return cleaned(inventory, ['reason']);
    assertCounted(inventory);
    const { hosts, limitedBy, free } = inventory;
    return {
      ...inventory,
      free: free.map(cleanedCount),
      ...(hosts !== undefined && { hosts: hosts.map(cleanedHost) }),
      ...(limitedBy !== undefined && { limitedBy: limitedBy.map(cleanText) }),
    };
  });
  const inventory: Inventory =
    'value' in answer ? answer.value : { answer: 'unknown', reason: answer.problem };
  const problem = inventory.answer === 'unknown' ? inventory.reason : undefined;
  noteCall(context, 'inventory', sentAt, inventory.answer, problem);
  return inventory;
}

function cleanedCount({ obstacles, misfits, ...count }: FreeUnits): FreeUnits {
  return {
    ...count,
    ...(obstacles !== undefined && { obstacles: obstacles.map(cleanText) }),
    ...(misfits !== undefined && { misfits: misfits.map(cleanText) }),
  };
}

function assertCounted({ answer, free, counted = [] }: Extract<Inventory, { answer: 'counted' }>): void {
  if (answer !== 'counted' || !Array.isArray(counted))
    throw new Error('the driver returned an invalid count');
  const seen = new Set<string>();
  for (const { offerId, datacenter, units } of free) {
    if (!Number.isSafeInteger(units) || units < 0)
      throw new Error(`the driver counts ${units} free units of ${offerId}`);
    const place = `${offerId} in ${datacenter}`;
    if (seen.has(place)) throw new Error(`the driver counts ${place} twice`);
    seen.add(place);
  }
}

function cleanedHost(shown: ObservedHost): ObservedHost {
  const host = cleaned(shown, ['host'], ['detail']);
  const devices = host.devices?.map((device) => cleaned(device, ['id', 'type'], ['detail']));
  return devices === undefined ? host : { ...host, devices };
}

/** Asks the driver which hosts can take a resource, with a deadline. Any failure is `unknown`. */
export async function askWhere(context: Waiting, call: () => Promise<Placing>): Promise<Placing> {
  const sentAt = context.clock.now();
  const answer = await answerInTime(context, call, (placing): Placing => {
    if (placing.answer === 'unknown') return cleaned(placing, ['reason']);
    if (placing.answer === 'refused') return cleaned(placing, ['detail']);
    return { answer: 'placed', hosts: placing.hosts.map((placed) => cleaned(placed, ['host'])) };
  });
  const placing: Placing = 'value' in answer ? answer.value : { answer: 'unknown', reason: answer.problem };
  noteCall(context, 'place', sentAt, placing.answer);
  return placing;
}

/** Asks the driver how much of its volumes is used, with a deadline. Any failure is `unknown`. */
export async function askUsage(
  context: Waiting,
  call: () => Promise<Listing<VolumeUse>>,
): Promise<Listing<VolumeUse>> {
  const sentAt = context.clock.now();
  const answer = await answerInTime(context, call, (listing): Listing<VolumeUse> => {
    if (listing.answer === 'unknown') return cleaned(listing, ['reason']);
    return { answer: 'listed', items: listing.items.filter(({ usedBytes }) => isBytes(usedBytes)) };
  });
  const listing: Listing<VolumeUse> =
    'value' in answer ? answer.value : { answer: 'unknown', reason: answer.problem };
  const problem = listing.answer === 'unknown' ? listing.reason : undefined;
  noteCall(context, 'volumes.usage', sentAt, listing.answer, problem);
  return listing;
}

const isBytes = (bytes: number): boolean => Number.isSafeInteger(bytes) && bytes >= 0;

/** Reads the console of a machine, with a deadline. */
export async function askConsole<Read>(
  context: Waiting,
  call: () => Promise<string | undefined>,
  read: (tail: string | undefined) => Read,
): Promise<{ value: Read } | { problem: string }> {
  const sentAt = context.clock.now();
  const answer = await answerInTime(context, call, read);
  if ('problem' in answer) noteCall(context, 'consoleTail', sentAt, 'unknown', answer.problem);
  else noteCall(context, 'consoleTail', sentAt, 'done');
  return answer;
}

/** Makes one SSH proof with a deadline. The machine's own texts are cleaned like those of the platform. */
export async function prove(context: Waiting, probe: () => Promise<ProbeResult>): Promise<ProbeResult> {
  const sentAt = context.clock.now();
  const answer = await answerInTime(context, probe, (result) =>
    result.ok ? result : cleaned(result, ['detail']),
  );
  const result: ProbeResult =
    'value' in answer ? answer.value : { ok: false, step: 'connect', detail: answer.problem };
  if (result.ok) noteCall(context, 'ssh', sentAt, 'proved');
  else noteCall(context, 'ssh', sentAt, result.step, result.detail);
  return result;
}

/** Adds a finished call that was sent at `at` to the history, the metrics and the traces. */
function noteCall(
  { clock, trace, telemetry }: Waiting,
  call: string,
  at: number,
  outcome: string,
  detail?: string,
): void {
  const tookMs = Math.max(0, Math.round(clock.now() - at));
  const noted = { call, outcome, at, tookMs, ...(detail !== undefined && { detail }) };
  trace?.add(noted);
  telemetry?.called(noted, trace !== undefined);
}

type Answered<Read> = { value: Read } | { problem: string };

/** Waits for an answer until the call timeout. Never rejects, even if `read` throws. */
export async function answerInTime<T, Read>(
  context: Waiting,
  call: () => Promise<T>,
  read: (answer: T) => Read | Promise<Read>,
): Promise<Answered<Read>> {
  const inTime = await within(context, readAnswer(call, read));
  return inTime ?? { problem: `no answer within ${context.options.callTimeoutMs} ms` };
}

/** Waits for an answer and reads it. Never rejects. */
async function readAnswer<T, Read>(
  call: () => Promise<T>,
  read: (answer: T) => Read | Promise<Read>,
): Promise<Answered<Read>> {
  try {
    return { value: await read(await call()) };
  } catch (error) {
    return { problem: cleanText(error instanceof Error ? error.message : String(error)) };
  }
}

/** Waits until the call timeout. Undefined if there is no answer until then. */
export async function within<T>({ clock, options }: Waiting, answering: Promise<T>): Promise<T | undefined> {
  const { promise: deadline, resolve } = Promise.withResolvers<undefined>();
  const timer = clock.setTimer(options.callTimeoutMs, () => resolve(undefined));
  const answer = await Promise.race([answering, deadline]);
  timer.cancel();
  return answer;
}

/** The step with cleaned texts and limited pauses. */
function sane<T>(step: Step<T>): Step<T> {
  switch (step.outcome) {
    case 'done':
      return { ...step, value: cleanedResource(step.value) };
    case 'pending': {
      const { progress, ...pending } = step;
      if (!isPlainText(step.cookie))
        throw new Error(`the driver gave a cookie that cannot be stored: ${EXPECTED_PLAIN_TEXT}`);
      return { ...pending, pollAfterMs: pauseOf(step.pollAfterMs), ...withProgress(progress) };
    }
    case 'failed': {
      const { retryAfterMs, ...failed } = cleaned(step, ['detail']);
      return retryAfterMs === undefined ? failed : { ...failed, retryAfterMs: pauseOf(retryAfterMs) };
    }
    default:
      throw new Error('the driver answered without an outcome');
  }
}

/** The progress with a clean text and a valid date. Without a text there is none. */
function withProgress(progress: Progress | undefined): { progress?: Progress } {
  if (progress === undefined) return {};
  const phase = cleanText(progress.phase);
  const deadlineAt = Math.round(progress.deadlineAt ?? Number.NaN);
  const isDate = Math.abs(deadlineAt) <= LAST_DATE_MS;
  return phase === '' ? {} : { progress: { phase, ...(isDate && { deadlineAt }) } };
}

function pauseOf(ms: number): number {
  return Number.isFinite(ms) ? Math.ceil(Math.min(Math.max(0, ms), LONGEST_PAUSE_MS)) : DEFAULT_PAUSE_MS;
}

async function withRefs<T>(listed: readonly T[]): Promise<T[]> {
  const items: T[] = [];
  for await (const slice of inSlices(listed)) for (const item of slice) items.push(withRef(item));
  return items;
}

/**
 * Cleans an observed resource.
 *
 * @throws {Error} if the resource has no ref, or one that cannot be stored: it would not be found again
 */
function withRef<T>(observed: T): T {
  const ref: unknown = (observed as Partial<ObservedMachine> | null)?.ref;
  if (typeof ref !== 'string') throw new Error('the driver shows a resource without its ref');
  if (!isPlainText(ref))
    throw new Error(`the driver shows a resource with the ref ${ref}: ${EXPECTED_PLAIN_TEXT}`);
  return cleanedResource(observed);
}

/**
 * The observed resource, with the texts that are stored in rows cleaned. The note is not cleaned; its reader validates
 * it.
 */
function cleanedResource<T>(observed: T): T {
  if (observed === null) return observed;
  const { endpoint, fault } = observed as Partial<ObservedMachine>;
  const clean = cleaned(observed as Partial<ObservedMachine>, [], ['detail', 'host', 'renamedTo']);
  const parts = {
    ...(endpoint && {
      endpoint: cleaned(endpoint, ['publicIp', 'sshUsername'], ['privateIp', 'hostKeyFingerprint']),
    }),
    ...(fault && { fault: cleaned(fault, ['finding', 'remedy']) }),
  };
  const isClean = parts.endpoint === endpoint && parts.fault === fault;
  return (isClean ? clean : { ...clean, ...parts }) as T;
}

/**
 * `shown` with its texts cleaned, or `shown` itself if nothing changed. @throws {TypeError} if a text is not a string
 */
function cleaned<T extends object>(
  shown: T,
  required: readonly (keyof T)[],
  optional: readonly (keyof T)[] = [],
): T {
  const present = optional.filter((name) => shown[name] !== undefined);
  let clean = shown;
  for (const name of [...required, ...present]) {
    const text = cleanText(shown[name] as string);
    if (text !== shown[name]) clean = { ...clean, [name]: text };
  }
  return clean;
}
