import { z } from 'zod';
import type { FailureCode } from '../../../orchestrator/model/platform-driver.ts';
import type { Fault as CallFault } from '../../../platform-model/call-faults.ts';
import type { Method } from '../../../platform-model/platform.ts';
import type { PlatformFault } from '../fault.ts';

const none = z.object({});
const GETS: readonly Method[] = ['get', 'volumes.get'];
const LISTS: readonly Method[] = ['list', 'volumes.list'];
const ORDERS: readonly Method[] = [
  ...(['create', 'stop', 'start', 'restart', 'destroy'] as const),
  ...(['volumes.create', 'volumes.attach', 'volumes.detach', 'volumes.resize', 'volumes.destroy'] as const),
];
const ALL: readonly Method[] = [...GETS, ...LISTS, 'inventory', ...ORDERS];
/** Poll interval of the orchestrator for a held step. */
const ASK_AGAIN_MS = 1_000;

function callFault<S extends z.ZodObject>(
  on: readonly Method[],
  row: Pick<PlatformFault<S>, 'does' | 'strikes' | 'params' | 'times'>,
  fault: (params: z.infer<S>, method: Method, nth: number) => CallFault,
): PlatformFault<S> {
  return { layer: 'platform', on, ...row, fault: ({ params, nth }, method) => fault(params, method, nth) };
}

/** The platform refuses an order without an effect. */
function refusing(code: FailureCode, on: readonly Method[], does: string, strikes: string) {
  return callFault(on, { does, strikes, params: none }, () => refusal(code));
}

function refusal(code: FailureCode): CallFault {
  return { kind: 'misclaim', code, sideEffect: 'none', isDone: false };
}

const stuck: CallFault = { kind: 'stuck', pollAfterMs: ASK_AGAIN_MS };
const ADOPT = 'Design: after an unknown outcome Berth looks first and adopts.';
const PROVED = 'Design: a row ends only on proof; an unreachable platform freezes transitions.';
const NO_CAPACITY = 'O: 409 capacity_unavailable, or ERROR with a reason; nothing is charged.';

export const platformFaults = {
  'platform-call-lost': callFault(
    ORDERS,
    {
      does: 'An order to the platform is lost: it fails, and nothing is done.',
      strikes: ADOPT,
      params: none,
    },
    () => 'fail-before',
  ),
  'platform-answer-lost': callFault(
    ORDERS,
    { does: 'An order is carried out, and its answer is lost.', strikes: ADOPT, params: none },
    () => 'fail-after',
  ),
  'create-fails-after-creating': callFault(
    ['create', 'volumes.create'],
    {
      does: 'The platform reports that a create failed and left nothing, but it has made the machine or volume.',
      strikes: 'Design: orphans are found by their owner tag.',
      params: z.object({ code: z.enum(['internal', 'transient', 'unknown_outcome']).default('internal') }),
    },
    ({ code }) => ({ kind: 'misclaim', code, sideEffect: 'none', isDone: true }),
  ),
  'platform-slow': callFault(
    ALL,
    {
      does: 'A call is carried out, and answered `ms` later.',
      strikes: 'Design: the core gives each call of a driver a deadline.',
      params: z.object({ ms: z.number().min(0).default(5_000) }),
      times: 'sticky',
    },
    ({ ms }) => ({ kind: 'delay', ms }),
  ),
  'platform-hangs': callFault(
    ORDERS,
    {
      does: 'An order reaches the platform `ms` after it was sent, when the caller no longer waits.',
      strikes: ADOPT,
      params: z.object({ ms: z.number().min(0).default(40_000) }),
    },
    ({ ms }) => ({ kind: 'late', ms }),
  ),
  'platform-outage': callFault(
    ALL,
    {
      does: 'The platform cannot be reached: every call fails.',
      strikes: 'O: while the platform is down, reads go on and creates are 409 capacity_unavailable.',
      params: none,
      times: 'sticky',
    },
    () => 'fail-before',
  ),
  'platform-unknown': callFault(
    [...GETS, ...LISTS, 'inventory'],
    {
      does: 'Gets and lists answer that the state is unknown.',
      strikes: PROVED,
      params: none,
      times: 'sticky',
    },
    () => 'unknown',
  ),
  'platform-empty-list': callFault(
    LISTS,
    {
      does: 'The platform lists nothing.',
      strikes: 'Design: absence from a listing is never proof.',
      params: none,
      times: 'sticky',
    },
    () => 'lie-empty',
  ),
  'platform-partial-list': callFault(
    LISTS,
    {
      does: 'The platform’s list is silently cut after `items`.',
      strikes: 'Design: absence from a listing is never proof.',
      params: z.object({ items: z.int().min(0).default(1) }),
      times: 'sticky',
    },
    ({ items }) => ({ kind: 'part', items }),
  ),
  'platform-list-lags': callFault(
    LISTS,
    {
      does: 'Resources younger than `s` seconds are missing from the platform’s list.',
      strikes: 'Design: absence from a listing is never proof.',
      params: z.object({ s: z.number().min(0).default(30) }),
      times: 'sticky',
    },
    ({ s }) => ({ kind: 'lag', ms: s * 1_000 }),
  ),
  'platform-forgets': callFault(
    GETS,
    {
      does: 'The platform reports once that a machine or volume is gone, although it exists.',
      strikes: 'Design: a machine is lost only if a list and a get agree.',
      params: none,
    },
    () => 'lie-gone',
  ),
  'platform-flapping': callFault(
    [...GETS, ...LISTS],
    {
      does: 'Every other get or list of the platform answers that the state is unknown.',
      strikes: PROVED,
      params: none,
      times: 'sticky',
    },
    (_params, _method, nth) => (nth % 2 === 1 ? 'unknown' : 'none'),
  ),
  'credential-revoked': callFault(
    ALL,
    {
      does: 'The platform no longer accepts the credential: it shows an empty account and refuses every order.',
      strikes: 'Design: a suddenly empty account raises an alarm and ends nothing.',
      params: none,
      times: 'sticky',
    },
    (_params, method) => {
      if (GETS.includes(method)) return 'lie-gone';
      if (LISTS.includes(method)) return 'lie-empty';
      return method === 'inventory' ? 'unknown' : refusal('auth');
    },
  ),
  'platform-unauthorized': refusing(
    'auth',
    ORDERS,
    'An order is refused: unknown credential.',
    'Design: an auth failure never ends an instance.',
  ),
  'platform-locked': refusing(
    'conflict',
    ORDERS,
    'An order is refused: the resource is locked.',
    'Design: a refused deletion is retried with backoff, for ever.',
  ),
  'no-capacity': refusing(
    'capacity',
    ['create', 'start'],
    'The platform has no room for a machine.',
    NO_CAPACITY,
  ),
  'quota-reached': refusing('quota', ['create'], 'The platform’s quota is reached.', NO_CAPACITY),
  'image-missing': refusing(
    'image_missing',
    ['create'],
    'The platform does not have the image.',
    NO_CAPACITY,
  ),
  'create-stuck': callFault(
    ['create'],
    {
      does: 'A create hangs: no machine is made.',
      strikes: 'O: provisioning reaches ONLINE within 10 minutes, or ends in ERROR.',
      params: none,
      times: 'sticky',
    },
    () => stuck,
  ),
  'stop-stuck': callFault(
    ['stop'],
    {
      does: 'A stop hangs.',
      strikes: 'O: STOPPING ends in STOPPED, or in ERROR.',
      params: none,
      times: 'sticky',
    },
    () => stuck,
  ),
  'start-stuck': callFault(
    ['start'],
    {
      does: 'A start hangs.',
      strikes: 'O: a start that fails leaves the instance STOPPED, with its disk.',
      params: none,
      times: 'sticky',
    },
    () => stuck,
  ),
  'destroy-stuck': callFault(
    ['destroy', 'volumes.destroy'],
    {
      does: 'A removal hangs.',
      strikes: 'Design: deletion is proved; until then it is DESTROYING.',
      params: none,
      times: 'sticky',
    },
    () => stuck,
  ),
  'destroy-lies': callFault(
    ['destroy', 'volumes.destroy'],
    {
      does: 'The platform reports a machine or volume as removed, but has not removed it.',
      strikes: 'Design: deletion is proved; until then it is DESTROYING.',
      params: none,
    },
    () => 'lie-done',
  ),
  'attach-stuck': callFault(
    ['volumes.attach'],
    {
      does: 'Attaching a volume hangs.',
      strikes: 'O: a volume is ATTACHED only when its instance sees it.',
      params: none,
      times: 'sticky',
    },
    () => stuck,
  ),
  'attach-lies': callFault(
    ['volumes.attach'],
    {
      does: 'The platform reports a volume as attached, but has not attached it.',
      strikes: 'O: attached_instance_ids is what the platform has a record for.',
      params: none,
    },
    () => 'lie-done',
  ),
  'detach-lingers': callFault(
    ['volumes.detach'],
    {
      does: 'Detaching a volume hangs: the attachment record remains.',
      strikes: 'O: a volume is not reported detached until the attachment record is gone.',
      params: none,
      times: 'sticky',
    },
    () => stuck,
  ),
  'resize-stuck': callFault(
    ['volumes.resize'],
    {
      does: 'Enlarging a volume hangs.',
      strikes: 'Extensions: a volume has its old size until it has grown.',
      params: none,
      times: 'sticky',
    },
    () => stuck,
  ),
} as const satisfies Record<string, PlatformFault>;
