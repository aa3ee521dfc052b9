import { countAtOnce, onAnswers, onRule, refusal } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';
import type { InstanceStatus } from '../reference/model.ts';

const GET = 'GET /instances/{instanceId}';
const LIST = 'GET /instances';
const START = 'POST /instances/{instanceId}/start';
const STOP = 'POST /instances/{instanceId}/stop';
const DELETE = 'DELETE /instances/{instanceId}';

/** Faults in the 404, and in the sequence of reads of an instance. */
export const lifeMutants: readonly Mutant[] = [
  {
    id: 'one-read-is-404',
    breaks: 'A known instance does not read 404 while it lives.',
    reddens: ['INS-404-001'],
    behave: (rules, hit) => {
      let count = 0;
      return {
        ...rules,
        answer(request, answer) {
          const isLive = (answer.json as { status?: unknown } | undefined)?.status === 'ONLINE';
          if (request.route !== GET || !isLive || ++count !== 10) return rules.answer(request, answer);
          hit();
          return refusal(404, 'not_found');
        },
      };
    },
  },
  {
    id: 'gone-comes-back',
    breaks: 'After DESTROYED an instance is gone.',
    reddens: ['INS-404-002', 'TRACE-FINAL-001'],
    alsoReddensWhenQuick: ['DEL-STAYS-001'],
    behave: (rules, hit) => {
      const last = new Map<string, object>();
      const reads = new Map<string, number>();
      return {
        ...rules,
        answer(request, answer) {
          const usual = rules.answer(request, answer);
          if (request.route === GET && usual.status === 200) last.set(request.path, usual.json as object);
          const shown = last.get(request.path);
          if (request.route !== GET || usual.status !== 404 || shown === undefined) return usual;
          const count = (reads.get(request.path) ?? 0) + 1;
          reads.set(request.path, count);
          if (count !== 3) return usual;
          hit();
          return { ...usual, status: 200, json: shown };
        },
      };
    },
  },
  {
    id: 'unknown-id-reads-400',
    breaks: 'An unknown instance reads 404.',
    reddens: ['INS-404-003'],
    behave: onAnswers([GET], (answer, { path }) =>
      answer.status === 404 && !/i-\d{5}$/.test(path) ? refusal(400, 'invalid_id') : undefined,
    ),
  },
  {
    id: 'delete-of-an-unknown-id-succeeds',
    breaks: 'DELETE of an unknown instance is 404.',
    reddens: ['INS-404-004'],
    behave: onAnswers([DELETE], (answer, { path }) =>
      answer.status === 404 && !/i-\d{5}$/.test(path) ? refusal(409, 'invalid_state') : undefined,
    ),
  },
  {
    id: 'gone-is-listed',
    breaks: 'A destroyed instance is gone.',
    reddens: ['INS-404-005'],
    behave: (rules, hit) => {
      const last = new Map<unknown, object>();
      return {
        ...rules,
        answer(request, answer) {
          const usual = rules.answer(request, answer);
          if (request.route !== LIST || request.query.size > 0 || usual.status !== 200) return usual;
          if (request.headers['authorization']?.includes('another-account')) return usual;
          const { instances } = usual.json as { instances: { id?: unknown }[] };
          const listed = new Set(instances.map(({ id }) => id));
          const ghosts = [...last].filter(([id]) => !listed.has(id)).map(([, item]) => item);
          for (const item of instances) last.set(item.id, item);
          if (ghosts.length === 0) return usual;
          hit();
          return { ...usual, json: { instances: [...instances, ...ghosts] } };
        },
      };
    },
  },
  {
    id: 'start-of-gone-is-409',
    breaks: 'start and stop of an instance that does not exist are 404.',
    reddens: ['INS-404-006'],
    behave: onAnswers([START, STOP], (answer, { path }) =>
      answer.status === 404 && /i-\d{5}/.test(path) ? refusal(409, 'invalid_state') : undefined,
    ),
  },
  {
    id: 'goes-back-to-provisioning',
    breaks: 'There is no way from ONLINE to PROVISIONING.',
    reddens: ['TRACE-PATH-001'],
    behave: shownOnce('ONLINE', 5, 'PROVISIONING'),
  },
  {
    id: 'destroyed-is-destroying-again',
    breaks: 'DESTROYED is terminal.',
    reddens: ['TRACE-FINAL-001'],
    options: { destroyedShownMs: 60_000 },
    behave: shownOnce('DESTROYED', 3, 'DESTROYING'),
  },
  {
    id: 'stops-by-itself',
    breaks: 'STOPPING follows a stop.',
    reddens: ['TRACE-CAUSE-001'],
    behave: shownOnce('ONLINE', 5, 'STOPPING'),
  },
  {
    id: 'reads-lag-by-a-minute',
    alsoReddensWhenQuick: ['RESTART-INS-001'],
    breaks: 'A change of status is observable within seconds.',
    reddens: ['TRACE-FRESH-001', 'TRACE-FRESH-002'],
    behave: lagging(['STOPPING', 'STOPPED'], 25_000),
  },
  {
    id: 'one-of-two-workers-lags',
    breaks: 'A status never goes back behind one that was read before.',
    reddens: ['INS-TIME-002', 'TRACE-CAUSE-001'],
    behave: (rules, hit, clock) => {
      const count = countAtOnce(clock);
      return onRule('showInstance', (shown, { status, updatedAtMs }, _shown, { route }) => {
        const isOfLateWorker = route === GET && count() % 2 === 1;
        return isOfLateWorker && status === 'STOPPING' && clock.wall() - updatedAtMs < 3000
          ? { ...shown, status: 'ONLINE', updated_at: shown['created_at'] }
          : undefined;
      })(rules, hit, clock);
    },
  },
  {
    id: 'online-is-seen-late',
    takesMs: 125_000,
    breaks: 'A change of status is observable within seconds.',
    reddens: ['TRACE-FRESH-002'],
    behave: lagging(['ONLINE'], 30_000),
  },
];

/** Shows another status at one polled read of the first instance, with `updated_at` changed. */
function shownOnce(status: InstanceStatus, nth: number, other: InstanceStatus): Mutant['behave'] {
  return (rules, hit, clock) => {
    let count = 0;
    let shownAtMs: number | undefined;
    let backAtMs: number | undefined;
    return {
      ...rules,
      showInstance(instance, shown, request) {
        const usual = rules.showInstance(instance, shown, request);
        if (instance.id !== 'i-00001') return usual;
        const isCounted = request.route === GET && instance.status === status;
        const isNow = isCounted && ++count === nth;
        if (isNow) {
          hit();
          shownAtMs = clock.wall();
          return { ...usual, updated_at: rules.timestamp(shownAtMs), status: other };
        }
        if (shownAtMs === undefined) return usual;
        backAtMs ??= clock.wall();
        return { ...usual, updated_at: rules.timestamp(Math.max(backAtMs, instance.updatedAtMs)) };
      },
    };
  };
}

/** Shows the old state for some time, complete with its old updated_at. */
function lagging(statuses: readonly InstanceStatus[], lagMs: number): Mutant['behave'] {
  return (rules, hit, clock) => {
    const before = new Map<string, Record<string, unknown>>();
    return {
      ...rules,
      showInstance(instance, shown, request) {
        const usual = rules.showInstance(instance, shown, request);
        const isLate =
          request.route === GET &&
          statuses.includes(instance.status) &&
          clock.wall() - instance.updatedAtMs < lagMs;
        const old = before.get(instance.id);
        if (isLate && old !== undefined) {
          hit();
          return old;
        }
        if (request.route === GET) before.set(instance.id, usual);
        return usual;
      },
    };
  };
}
