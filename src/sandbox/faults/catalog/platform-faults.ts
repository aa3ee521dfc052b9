import { z } from 'zod';
import type { FailureCode } from '../../../orchestrator/model/platform-driver.ts';
import type { Fault as CallFault } from '../../../platform-model/call-faults.ts';
import type { Method } from '../../../platform-model/platform.ts';
import { type More, NEVER_MS, type PlatformFault } from '../fault.ts';

const GETS: readonly Method[] = ['get', 'volumes.get'];
const LISTS: readonly Method[] = ['list', 'volumes.list'];
const ORDERS: readonly Method[] = [
  ...(['create', 'stop', 'start', 'restart', 'destroy'] as const),
  ...(['volumes.create', 'volumes.attach', 'volumes.detach', 'volumes.resize', 'volumes.destroy'] as const),
];
const ALL: readonly Method[] = [...GETS, ...LISTS, 'inventory', ...ORDERS];
/** Poll interval of the orchestrator for a step that its next call may end. */
const ASK_AGAIN_MS = 1_000;

function callFault<S extends z.ZodRawShape = Record<never, never>>(
  on: readonly Method[],
  does: string,
  rule: string,
  fault: CallFault | ((params: z.output<z.ZodObject<S>>, method: Method, nth: number) => CallFault),
  { params = {} as S, times }: More<S> = {},
): PlatformFault<S> {
  return {
    layer: 'platform',
    on,
    does,
    rule,
    params: z.object(params),
    times,
    fault: (trigger, method) =>
      typeof fault === 'function' ? fault(trigger.params, method, trigger.nth) : fault,
  };
}

/** The platform refuses an order without an effect. */
const refused = (code: FailureCode): CallFault => ({
  kind: 'misclaim',
  code,
  sideEffect: 'none',
  isDone: false,
});

/** The order stays pending, without an effect, until the fault is disarmed. */
function stuck(on: readonly Method[], does: string, rule: string): PlatformFault<Record<never, never>> {
  return {
    ...callFault(on, does, rule, 'none', { times: 'sticky' }),
    fault({ sureUntil, clock }) {
      const surelyMs = Math.min(sureUntil - clock.now(), NEVER_MS);
      return { kind: 'stuck', pollAfterMs: Math.max(surelyMs, ASK_AGAIN_MS) };
    },
  };
}

const ADOPT = 'Design: after an unknown outcome Berth looks first and adopts.';
const PROVED = 'Design: a row ends only on proof; an unreachable platform freezes transitions.';
const ABSENT = 'Design: absence from a listing is never proof.';
const DELETED = 'Design: deletion is proved; until then it is DESTROYING.';
const NO_CAPACITY = 'O: 409 capacity_unavailable, or ERROR with a reason; nothing is charged.';

export const platformFaults = {
  'platform-call-lost': callFault(
    ORDERS,
    'An order to the platform is lost: it fails, and nothing is done.',
    ADOPT,
    'fail-before',
  ),
  'platform-answer-lost': callFault(
    ORDERS,
    'An order is carried out, and its answer is lost.',
    ADOPT,
    'fail-after',
  ),
  'create-fails-after-creating': callFault(
    ['create', 'volumes.create'],
    'The platform reports that a create failed and left nothing, but it has made the machine or volume.',
    'Design: orphans are found by their owner tag.',
    ({ code }) => ({ kind: 'misclaim', code, sideEffect: 'none', isDone: true }),
    { params: { code: z.enum(['internal', 'transient', 'unknown_outcome']).default('internal') } },
  ),
  'platform-slow': callFault(
    ALL,
    'A call is carried out, and answered `ms` later.',
    'Design: the core gives each call of a driver a deadline.',
    ({ ms }) => ({ kind: 'delay', ms }),
    { params: { ms: z.number().min(0).default(5_000) }, times: 'sticky' },
  ),
  'platform-hangs': callFault(
    ORDERS,
    'An order reaches the platform `ms` after it was sent, when the caller no longer waits.',
    ADOPT,
    ({ ms }) => ({ kind: 'late', ms }),
    { params: { ms: z.number().min(0).default(40_000) } },
  ),
  'platform-outage': callFault(
    ALL,
    'The platform cannot be reached: every call fails.',
    'O: while the platform is down, reads go on and creates are 409.',
    'fail-before',
    { times: 'sticky' },
  ),
  'platform-unknown': callFault(
    [...GETS, ...LISTS, 'inventory'],
    'Gets and lists answer that the state is unknown.',
    PROVED,
    'unknown',
    { times: 'sticky' },
  ),
  'platform-empty-list': callFault(LISTS, 'The platform lists nothing.', ABSENT, 'lie-empty', {
    times: 'sticky',
  }),
  'platform-partial-list': callFault(
    LISTS,
    'The platform’s list is silently cut after `items`.',
    ABSENT,
    ({ items }) => ({ kind: 'part', items }),
    { params: { items: z.int().min(0).default(1) }, times: 'sticky' },
  ),
  'platform-list-lags': callFault(
    LISTS,
    'Resources younger than `s` seconds are missing from the platform’s list.',
    ABSENT,
    ({ s }) => ({ kind: 'lag', ms: s * 1_000 }),
    { params: { s: z.number().min(0).default(30) }, times: 'sticky' },
  ),
  'platform-forgets': callFault(
    GETS,
    'The platform reports once that a machine or volume is gone, although it exists.',
    'Design: a machine is lost only if a list and a get agree.',
    'lie-gone',
  ),
  'platform-flapping': callFault(
    [...GETS, ...LISTS],
    'Every other get or list of the platform answers that the state is unknown.',
    PROVED,
    (_params, _method, nth) => (nth % 2 === 1 ? 'unknown' : 'none'),
    { times: 'sticky' },
  ),
  'credential-revoked': callFault(
    ALL,
    'The platform no longer accepts the credential: it shows an empty account and refuses every order.',
    'Design: a suddenly empty account raises an alarm and ends nothing.',
    (_params, method) => {
      if (GETS.includes(method)) return 'lie-gone';
      if (LISTS.includes(method)) return 'lie-empty';
      return method === 'inventory' ? 'unknown' : refused('auth');
    },
    { times: 'sticky' },
  ),
  'platform-unauthorized': callFault(
    ORDERS,
    'An order is refused: unknown credential.',
    'Design: an auth failure never ends an instance.',
    refused('auth'),
  ),
  'platform-locked': callFault(
    ORDERS,
    'An order is refused: the resource is locked.',
    'Design: a refused deletion is retried with backoff, for ever.',
    refused('conflict'),
  ),
  'no-capacity': callFault(
    ['create', 'start'],
    'The platform has no room for a machine.',
    NO_CAPACITY,
    refused('capacity'),
  ),
  'quota-reached': callFault(['create'], 'The platform’s quota is reached.', NO_CAPACITY, refused('quota')),
  'image-missing': callFault(
    ['create'],
    'The platform does not have the image.',
    NO_CAPACITY,
    refused('image_missing'),
  ),
  'volume-refused': callFault(
    ['volumes.create'],
    'The platform refuses to create a volume.',
    'O: a volume that cannot be created: CREATING → ERROR.',
    refused('quota'),
  ),
  'create-stuck': stuck(
    ['create'],
    'A create hangs: no machine is made.',
    'O: provisioning reaches ONLINE within 10 minutes, or ends in ERROR.',
  ),
  'stop-stuck': stuck(['stop'], 'A stop hangs.', 'O: STOPPING ends in STOPPED, or in ERROR.'),
  'start-stuck': stuck(
    ['start'],
    'A start hangs.',
    'O: a start that fails leaves the instance STOPPED, with its disk.',
  ),
  'destroy-stuck': stuck(['destroy', 'volumes.destroy'], 'A removal hangs.', DELETED),
  'destroy-lies': callFault(
    ['destroy', 'volumes.destroy'],
    'The platform reports a machine or volume as removed, but has not removed it.',
    DELETED,
    'lie-done',
  ),
  'attach-stuck': stuck(
    ['volumes.attach'],
    'Attaching a volume hangs.',
    'O: a volume is ATTACHED only when its instance sees it.',
  ),
  'attach-lies': callFault(
    ['volumes.attach'],
    'The platform reports a volume as attached, but has not attached it.',
    'O: attached_instance_ids is what the platform has a record for.',
    'lie-done',
  ),
  'detach-lingers': stuck(
    ['volumes.detach'],
    'Detaching a volume hangs: the attachment record remains.',
    'O: a volume is detached when its attachment record is gone.',
  ),
  'resize-stuck': stuck(
    ['volumes.resize'],
    'Enlarging a volume hangs.',
    'Extensions: a volume shows its old size until it has grown.',
  ),
} as const satisfies Record<string, PlatformFault>;
